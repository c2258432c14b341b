"""What two ways of sending the same chat have in common, and where they differ."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.probe.seen import Seen


@dataclass(frozen=True, slots=True)
class Told:
    """What one way came to: the bodies the provider got, and what a client reads in the end."""

    sent: Sequence[Mapping[str, Any]]
    answer: Seen | None
    """None where the chat was refused."""
    refusal: str = ""

    def as_read(self) -> dict[str, Any]:
        """The answer in plain values, the same for whole and streamed ones."""
        if self.answer is None:
            return {"refused": True}
        calls: dict[Any, list[str]] = {}
        for number, call in enumerate(self.answer.calls):
            function = call.get("function") or {}
            parts = calls.setdefault(call.get("index", number), ["", ""])
            parts[0] += function.get("name") or ""
            parts[1] += function.get("arguments") or ""
        reasoning = "".join(message.get("reasoning_content") or "" for message in self.answer.messages)
        usage = self.answer.usage
        return {
            "text": self.answer.text,
            "reasoning": reasoning,
            "calls": [[name, json.loads(arguments)] for name, arguments in calls.values()],
            "finish": sorted(set(self.answer.finish_reasons)),
            "answers": len({choice.get("index") for choice in self.answer.choices}),
            "logprobs": _logprobs(self.answer),
            "usage": [usage.get("prompt_tokens"), usage.get("completion_tokens")] if usage else None,
        }


def differences(ours: Told, theirs: Told) -> Iterator[tuple[str, Any, Any]]:
    """Each place where the two differ, with what stands there: ``sent.NAME``, ``requests``, ``read.NAME``."""
    if len(ours.sent) != len(theirs.sent):
        yield "requests", len(ours.sent), len(theirs.sent)
    if ours.sent and theirs.sent:
        first, other = ours.sent[0], theirs.sent[0]
        for name in sorted({*first, *other}):
            if first.get(name) != other.get(name):
                yield f"sent.{name}", first.get(name), other.get(name)
    read, also = ours.as_read(), theirs.as_read()
    if ("refused" in read) is not ("refused" in also):
        yield "refused", ours.refusal or None, theirs.refusal or None
        return
    for name in read:
        if read[name] != also[name]:
            yield f"read.{name}", read[name], also[name]


def _logprobs(seen: Seen) -> list[str]:
    rows = [
        ((choice.get("logprobs") or {}) if isinstance(choice.get("logprobs"), dict) else {}) for choice in seen.choices
    ]
    return [
        row["token"] for one in rows for row in one.get("content") or () if isinstance(row, dict) and "token" in row
    ]
