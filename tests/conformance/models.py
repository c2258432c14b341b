"""The models that the conformance suite asks: one of every provider, and all the others there are."""

from __future__ import annotations

from adapters.registry import load_spec, preset_types, provider_types
from adapters.types import Operation


def _chats(kinds: list[str]) -> list[str]:
    """Those of *kinds* that chat."""
    return [
        kind
        for kind in kinds
        if (endpoint := load_spec(kind).endpoints.get(Operation.CHAT)) is not None and endpoint.available
    ]


PROVIDERS = _chats(provider_types())
MODELS: dict[str, tuple[str, str | None]] = {kind: (kind, None) for kind in PROVIDERS}
OTHERS: dict[str, tuple[str, str | None]] = {kind: (kind, None) for kind in _chats(preset_types())} | {
    f"{kind}: {model.id}": (kind, model.id) for kind in PROVIDERS for model in load_spec(kind).models if model.offered
}
OTHERS["local: a model with tools"] = ("local", "qwen3-0.6b")
OTHERS["colibri: a model with tools"] = ("colibri", "glm-5.2")
"""Presets, every model of the hosted providers, and what engines do with a model that has tools."""
EVERY: dict[str, tuple[str, str | None]] = {**MODELS, **OTHERS}
