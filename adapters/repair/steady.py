"""Finds the text in an event whose like would be repaired in the same way, whatever text it holds."""

from __future__ import annotations

from typing import Any

import msgspec

from adapters.repair.choice import ChoiceRepair
from adapters.repair.chunk import holds, object_of
from adapters.repair.rules import Rules
from adapters.stream import StreamEvent
from adapters.stream_pattern import Slot

_decode_choices = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_first = msgspec.json.Decoder(list[dict[str, msgspec.Raw]]).decode
REASONING = "reasoning_content"


def find_slot(event: StreamEvent, choice: ChoiceRepair, rules: Rules, *, chat: bool) -> Slot | None:
    """The slot of *event*, the last one that *choice* has taken.

    What stands around the text decides nothing then: it has been heard before, and is no more than repeated. What is
    left is what the text itself decides, and of that the slot's watch knows.
    """
    (said,) = _decode_first(_decode_choices(event.data)["choices"])
    if event.finish_reasons or event.has_usage or holds(said.get("logprobs")):
        return None  # log probabilities name the text once more
    if not chat:
        return choice.slot()
    delta: dict[str, Any] = object_of(said.get("delta"))
    thoughts = (REASONING, *rules.reasoning_members)
    found = tuple(name for name in ("content", *thoughts, "tool_calls", "function_call") if holds(delta.get(name)))
    if found == ("content",):
        return choice.slot()
    if found == ("tool_calls",):
        return Slot(("arguments",), "arguments", choice.calls.more) if choice.calls.more is not None else None
    if len(found) in (1, 2) and all(name in thoughts for name in found):
        return Slot(found, REASONING)  # TensorRT-LLM and vLLM say it under both names
    return None
