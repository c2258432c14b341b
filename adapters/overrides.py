"""Lays changes over a provider file's facts: another file's that inherits from it, or the operator's ``overrides``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.vocabulary import FROM_CONFIG

OVERRIDABLE = frozenset({
    "transport", "endpoints", "messages", "params", "defaults", "extra_params", "conflicts", "reasoning", "streaming",
    "usage", "finish_reason", "errors", "rate_limit_headers", "context", "lora",
})  # fmt: skip
"""The keys of a provider file that ``overrides`` may hold."""


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """*over* laid over *base*: mappings merge, lists and scalars are replaced.

    A mapping that states its own ``support`` replaces the old one whole: bounds and patches that went with the old
    kind of support mean nothing to the new one.
    """
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping) and "support" not in value:
            merged[key] = merge(old, value)
        else:
            merged[key] = value
    return merged


def with_config_source(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """*overrides* with the operator's configuration as the source of parameters that name none."""
    params = overrides.get("params")
    if not isinstance(params, Mapping):
        return dict(overrides)
    sourced = {
        name: {"src": (FROM_CONFIG,), **entry} if isinstance(entry, Mapping) else entry
        for name, entry in params.items()
    }
    return {**overrides, "params": sourced}
