"""A configuration without a file: the providers whose keys are in the environment, and the local engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from adapters.registry import load_spec
from gateway.config.provider_settings import LOCAL_TYPE

LOCAL_MODEL = "smollm2-135m-instruct"
"""The bundled default model, as clients call it."""

LOCAL_ALIAS = "local"

KEY_VARIABLES: Final[Mapping[str, str]] = {
    "cerebras": "CEREBRAS_API_KEY",
    "fireworks": "FIREWORKS_API_KEY",
    "groq": "GROQ_API_KEY",
    "openai": "OPENAI_API_KEY",
    "together": "TOGETHER_API_KEY",
}
"""The hosted provider types, with the variables their own documentation uses: a table, so that no file is read for a
provider whose key is not there."""


def hosted_types() -> list[str]:
    """The provider types that are companies with an API of their own."""
    return list(KEY_VARIABLES)


def tree_from_environment(environ: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """The settings' tree as a file would have given it, and lines for the console that say what was found."""
    providers: dict[str, Any] = {LOCAL_TYPE: {"type": LOCAL_TYPE}}
    models: dict[str, Any] = {LOCAL_MODEL: {"targets": [{"provider": LOCAL_TYPE}]}}
    notes = ["no configuration file: using the local engine and the provider keys in the environment"]
    missing: list[str] = []
    for name, variable in KEY_VARIABLES.items():
        if not environ.get(variable, "").strip():
            missing.append(variable)
            continue
        providers[name] = {"type": name, "api_key": environ[variable]}
        offered = [model for model in load_spec(name).models if model.offered]
        for model in offered:
            entry = models.setdefault(model.canonical, {"targets": []})
            entry["targets"].append({"provider": name, "model": model.id})
        count = "1 model" if len(offered) == 1 else f"{len(offered)} models"
        notes.append(f"{name}: {count}, with the key in {variable}")
    notes.append(f"{LOCAL_TYPE}: {LOCAL_MODEL}, also called '{LOCAL_ALIAS}'")
    if missing:
        notes.append(f"not set: {', '.join(missing)}")
    tree = {
        "providers": providers,
        "models": models,
        "aliases": {LOCAL_ALIAS: LOCAL_MODEL},
        "expose_provider_models": True,
    }
    return tree, notes
