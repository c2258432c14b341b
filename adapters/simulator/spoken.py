"""From what a model would say to what the request lets it say: stops, limits, reasons to end, numbers of calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from adapters.simulator.asked import Asked, ReasoningForm
from adapters.simulator.reply import Reply
from adapters.simulator.tokens import count_tokens, cut_at, tokens_of
from adapters.spec import ProviderSpec


@dataclass(frozen=True, slots=True)
class Spoken:
    """One choice."""

    tokens: Sequence[str]
    finish_reason: str
    reasoning: str = ""
    """What goes into a field of its own."""
    calls: tuple[dict[str, Any], ...] = ()
    thought_tokens: int = 0
    """Tokens spent on reasoning, wherever it went."""

    @property
    def text(self) -> str:
        return "".join(self.tokens)

    @property
    def token_count(self) -> int:
        arguments = sum(count_tokens(call["function"]["arguments"]) for call in self.calls)
        return len(self.tokens) + arguments + self.thought_tokens


class Speaker:
    """Lets the model of one provider speak."""

    def __init__(self, spec: ProviderSpec) -> None:
        self._reasoning = spec.reasoning
        words = tuple(spec.finish_reason.nonstandard)
        # Some name the token that ended the answer, or the text that did.
        self._end = next((word for word in words if word.startswith("eos")), "stop")
        self._stopped = "stop_sequence" if "stop_sequence" in words else "stop"

    def speak(self, reply: Reply, asked: Asked, canonical: str, number: str, limit: int | None) -> Spoken:
        """One choice of a chat with the model of that canonical name.

        *number* makes the ids of its calls; *limit* is in tokens of the answer's own text.
        """
        thought = count_tokens(reply.reasoning)
        reasoning = reply.reasoning if asked.reasoning_form is ReasoningForm.FIELD else ""
        if reply.calls:
            calls = tuple(
                {
                    "id": f"call_{number}{index}",
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for index, call in enumerate(reply.calls)
            )
            return Spoken((), "tool_calls", reasoning, calls, thought)
        spoken = self.cut(reply.text, asked.stops, limit)
        if not reply.reasoning or asked.reasoning_form is not ReasoningForm.TAGS:
            return Spoken(spoken.tokens, spoken.finish_reason, reasoning, (), thought)
        opening, closing = next(iter(self._reasoning.tags.items()))
        begin = "" if self._reasoning.opens_for(canonical) else f"{opening}\n"
        tagged = tokens_of(f"{begin}{reply.reasoning}\n{closing}\n\n")
        return Spoken([*tagged, *spoken.tokens], spoken.finish_reason)

    def cut(self, text: str, stops: Sequence[str], limit: int | None) -> Spoken:
        """*text* up to a stop and within the limit."""
        text, stopped = cut_at(text, stops)
        tokens = tokens_of(text)
        if limit is not None and len(tokens) > limit:
            return Spoken(tokens[:limit], "length")
        return Spoken(tokens, self._stopped if stopped else self._end)
