"""Whole answers, as a provider writes them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from adapters.simulator.asked import Asked
from adapters.simulator.spoken import Spoken
from adapters.simulator.tokens import id_rows, logprob_arrays, logprob_rows
from adapters.spec import ProviderSpec
from adapters.vocabulary import LogprobsShape

_FIELD: Final = re.compile(r"(?:message|delta)\.(\w+)")


def reasoning_field_names(spec: ProviderSpec, *, streamed: bool) -> tuple[str, ...]:
    """The fields that carry reasoning text; none where it stands in the content, between think tags."""
    whole = tuple(_FIELD.findall(spec.reasoning.out_field or ""))
    return tuple(_FIELD.findall(spec.reasoning.stream_field or "")) or whole if streamed else whole


def logprobs_of(tokens: Sequence[str], asked: Asked, shape: LogprobsShape | None = None) -> Any:
    """The log probabilities in the shape that was asked for, or that the provider has."""
    if asked.logprobs is None:
        return None
    match shape or asked.logprobs_shape:
        case LogprobsShape.ARRAYS:
            return logprob_arrays(tokens, asked.logprobs)
        case LogprobsShape.CONTENT_IDS:
            return {"content": id_rows(tokens, asked.logprobs)}
        case LogprobsShape.FLOAT:
            return logprob_rows(tokens, 0)[0]["logprob"]
        case LogprobsShape.OPENAI:
            return {"content": logprob_rows(tokens, asked.logprobs), "refusal": None}


class WholeChat:
    """Writes the choices of one provider's whole chat answers."""

    def __init__(self, spec: ProviderSpec) -> None:
        self._reasoning_fields = reasoning_field_names(spec, streamed=False)
        # Who refuses an empty list in history is who sends one: that is how it gets there.
        self._empty_calls = spec.messages.empty_tool_calls is not None

    def choice(self, index: int, spoken: Spoken, asked: Asked) -> dict[str, Any]:
        """One entry of ``choices``."""
        message: dict[str, Any] = {"role": "assistant", "content": None if spoken.calls else spoken.text}
        if spoken.reasoning:
            message |= dict.fromkeys(self._reasoning_fields, spoken.reasoning)
        if spoken.calls:
            message["tool_calls"] = list(spoken.calls)
        elif self._empty_calls:
            message["tool_calls"] = []
        return {
            "index": index,
            "message": message,
            "logprobs": logprobs_of(spoken.tokens, asked),
            "finish_reason": spoken.finish_reason,
        }


def completion_choice(index: int, spoken: Spoken, asked: Asked) -> dict[str, Any]:
    """One entry of a text completion's ``choices``."""
    return {
        "index": index,
        "text": spoken.text,
        "logprobs": logprobs_of(spoken.tokens, asked),
        "finish_reason": spoken.finish_reason,
    }
