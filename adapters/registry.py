"""Finds the provider files and reads each at most once, when it is first needed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from adapters import located_yaml
from adapters.located_yaml import Document, Problem
from adapters.overrides import merge
from adapters.spec import FROM_TRANSPORT, ProviderSpec
from adapters.validation import did_you_mean, one_of, problems_of

DIRECTORY = Path(__file__).parent / "providers"
PRESETS = DIRECTORY / "presets"
"""Files of tools that are known by what they inherit and the little in which they differ."""

_OWN_KEYS = ("schema", "id", "name", "kind", "as_of", "verified", "note", "telemetry_name", "models", "price_lists")
"""What a file never takes from the one it inherits from."""


class SpecError(Exception):
    """A provider file is wrong; *problems* name file and line."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


class UnknownProviderTypeError(LookupError):
    """There is no provider file of that name; the message names the nearest one."""


@cache
def provider_types() -> list[str]:
    """The ids of all provider files but the presets, in alphabetical order."""
    return sorted(path.stem for path in DIRECTORY.glob("*.yaml"))


@cache
def preset_types() -> list[str]:
    """The ids of the presets, in alphabetical order. None of them is hosted."""
    return sorted(path.stem for path in PRESETS.glob("*.yaml"))


@cache
def load_spec(type_id: str) -> ProviderSpec:
    """The facts about a type of provider; `UnknownProviderTypeError` or `SpecError` when there are none to be had."""
    types = provider_types() + preset_types()
    if type_id not in types:
        raise UnknownProviderTypeError(
            f"'{type_id}' is not a provider type.{did_you_mean(type_id, types)}{one_of(types)}"
        )
    return read_spec(_file_of(type_id, PRESETS))


def read_spec(path: Path) -> ProviderSpec:
    """Read and check one provider file, with what it inherits; raises `SpecError` with everything that is wrong."""
    return _read(path, ())


def _read(path: Path, heirs: tuple[Path, ...]) -> ProviderSpec:
    """As `read_spec`, for the sake of *heirs*, the files that inherit from it."""
    try:
        document = located_yaml.parse(path.read_text(encoding="utf-8"), path.name)
    except located_yaml.YamlError as error:
        raise SpecError(error.problems) from None
    raw = document.value
    if not isinstance(raw, dict):
        raise SpecError([document.problem((), "a mapping (key: value) is expected")])
    parent = _parent_of(raw, document, path, (*heirs, path))
    problems = _own_problems(raw, document, path, parent)
    try:
        spec = ProviderSpec.model_validate(_inherit(raw, parent))
    except ValidationError as error:
        problems += [document.problem(at, text, of_key=of_key) for at, of_key, text in problems_of(error, ProviderSpec)]
    if problems:
        raise SpecError(problems)
    return spec


def _file_of(type_id: str, directory: Path) -> Path:
    """The file of *type_id* in *directory*, or the one of that name among the providers themselves."""
    own = directory / f"{type_id}.yaml"
    return own if own.is_file() else DIRECTORY / own.name


def _parent_of(raw: Mapping[str, Any], document: Document, path: Path, heirs: tuple[Path, ...]) -> ProviderSpec | None:
    parent_id = raw.get("inherits")
    if not isinstance(parent_id, str):
        return None
    file = _file_of(parent_id, path.parent)
    if file in heirs:
        way = " -> ".join(heir.stem for heir in (*heirs[heirs.index(file) :], file))
        raise SpecError([document.problem(("inherits",), f"it inherits from itself: {way}")])
    if not file.is_file():
        known = provider_types() + preset_types()
        message = f"there is no provider file '{parent_id}.yaml'.{did_you_mean(parent_id, known)}"
        raise SpecError([document.problem(("inherits",), message)])
    return _read(file, heirs)


def _inherit(raw: Mapping[str, Any], parent: ProviderSpec | None) -> dict[str, Any]:
    if parent is None:
        return dict(raw)
    inherited = parent.model_dump(by_alias=True, exclude_unset=True)
    merged = merge({key: value for key, value in inherited.items() if key not in _OWN_KEYS}, raw)
    return {**merged, "lineage": (parent.id, *parent.lineage)}


def _own_problems(raw: Mapping[str, Any], document: Document, path: Path, parent: ProviderSpec | None) -> list[Problem]:
    """What a schema cannot see: the file's name, and sources that do not exist or mean two things."""
    problems: list[Problem] = []
    if raw.get("id") != path.stem:
        problems.append(document.problem(("id",), f"the id has to be the file's name, '{path.stem}'"))
    if "lineage" in raw:
        problems.append(document.problem(("lineage",), "this follows from 'inherits'; leave it out", of_key=True))
    sources = raw.get("sources")
    own = set(sources) if isinstance(sources, dict) else set()
    inherited = set(parent.sources) if parent is not None else set()
    problems += [
        document.problem(("sources", name), f"'{name}' is a source of '{raw['inherits']}' already", of_key=True)
        for name in sorted(own & inherited)
    ]
    known = {FROM_TRANSPORT, *own, *inherited}
    for at in document.values:
        if len(at) >= 2 and at[-2] == "src" and isinstance(at[-1], int):
            source = _at(raw, at)
            if source not in known:
                problems.append(
                    document.problem(at, f"'{source}' is not in 'sources'.{did_you_mean(str(source), known)}")
                )
    return problems


def _at(value: Any, path: located_yaml.Path) -> Any:
    for part in path:
        value = value[part]
    return value
