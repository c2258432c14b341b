"""A provider whose key came out empty is switched off: it goes, and so does every target that needs it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from adapters.located_yaml import Path

Finding = tuple[Path, bool, str]


Kept = dict[Path, list[int]]
"""For each list that lost entries: where the remaining ones stood, so that errors point at the right line."""


def take_out_disabled(tree: dict[str, Any], notes: list[str], kept: Kept) -> Iterator[Finding]:
    """Remove disabled providers and their targets from *tree*, telling *notes*; yields what cannot be left out."""
    providers, models = tree.get("providers"), tree.get("models")
    if not isinstance(providers, dict):
        return
    gone = [
        name for name, provider in providers.items() if isinstance(provider, dict) and _disabled(name, provider, kept)
    ]
    for name in gone:
        del providers[name]
        notes.append(f"provider {name} is disabled: its api_key is empty")
    if not gone or not isinstance(models, dict):
        return
    empty: list[str] = []
    for name, model in models.items():
        targets = model.get("targets") if isinstance(model, dict) else None
        if not isinstance(targets, list):
            continue
        left = [i for i, t in enumerate(targets) if not (isinstance(t, dict) and t.get("provider") in gone)]
        if targets and not left:
            empty.append(name)
        model["targets"] = [targets[i] for i in left]
        kept["models", name, "targets"] = left
    for name in empty:
        del models[name]
        notes.append(f"model {name} is left out: all its providers are disabled")
    if empty and not models:
        yield ("models",), False, "no model is left, because every provider they need is disabled"
    aliases = tree.get("aliases")
    if isinstance(aliases, dict):
        left_out = [alias for alias, model in aliases.items() if model in empty]
        notes += [f"alias {alias} is left out with model {aliases.pop(alias)}" for alias in left_out]


def _disabled(name: str, provider: dict[str, Any], kept: Kept) -> bool:
    keys = provider.get("api_keys")
    if isinstance(keys, list) and keys:
        left = [i for i, key in enumerate(keys) if key != ""]
        provider["api_keys"] = [keys[i] for i in left]
        kept["providers", name, "api_keys"] = left
        return not left
    return provider.get("api_key") == ""
