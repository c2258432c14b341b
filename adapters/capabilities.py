"""What clients of a target may use: what it has, and what patches make possible there."""

from __future__ import annotations

from typing import Final

from adapters.adapter import Adapter
from adapters.catalogue.record import ModelKind
from adapters.handling import Handling, outcomes_at
from adapters.target import Target
from adapters.types import Operation

STRUCTURED_OUTPUTS: Final = "structured_outputs"
"""What answers to a JSON schema are called where parameters are listed."""

_USABLE: Final = (Handling.NATIVE, Handling.PATCHED)


def usable_parameters(target: Target) -> frozenset[str]:
    """The parameters that a client of *target* gets what it asks for with, named as OpenRouter names them.

    Left out is what would be refused, dropped, or taken without effect.
    """
    kind = target.record.kind if target.record is not None else ModelKind.TEXT
    if kind is not ModelKind.TEXT:
        # Vectors come in either encoding, whatever the provider has; the rest is for generations.
        return frozenset({"encoding_format"} if kind is ModelKind.EMBEDDING else ())
    own = {name for name in target.spec.extra_params if "." not in name}
    chat = target.spec.endpoints.get(Operation.CHAT)
    if chat is None or not chat.available:
        return frozenset(own)
    names = {name for name, outcome in outcomes_at(Adapter(target)).items() if outcome.handling in _USABLE}
    found = {name.partition(".")[0] for name in names}
    if "response_format.json_schema" in names:
        found.add(STRUCTURED_OUTPUTS)
    return frozenset(found | own)


def input_modalities(target: Target) -> tuple[str, ...]:
    """What may stand in a prompt: sound, or text and, where the model is known to see, images."""
    record = target.record
    if record is not None and record.kind is ModelKind.TRANSCRIPTION:
        return ("audio",)
    return ("text", "image") if record is not None and record.vision else ("text",)


def output_modalities(target: Target) -> tuple[str, ...]:
    """What an answer consists of."""
    kind = target.record.kind if target.record is not None else ModelKind.TEXT
    return (_OUTPUT.get(kind, "text"),)


_OUTPUT: Final = {ModelKind.EMBEDDING: "embeddings", ModelKind.SPEECH: "audio", ModelKind.RERANK: "rerank"}
