"""Puts streams and answers through a provider's repair, and reads them as a client that forgives nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import msgspec

from adapters.answers import read_answer
from adapters.draft import AnswerNeeds
from adapters.registry import load_spec
from adapters.repair.repair import Repair, compile_repair
from adapters.stream import StreamEvent, read_event
from adapters.types import Operation

MEMBERS: dict[str, Any] = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "up"}
TOOLS = {"tools": [{"type": "function", "function": {"name": name}} for name in ("get_time", "get_weather")]}


@cache
def repair_of(provider: str) -> Repair:
    """The repair of a provider as its file describes it, or of an engine told apart by one fact."""
    return compile_repair(load_spec(provider), "up")


def repair_with(**overrides: Any) -> Repair:
    """The repair of a plain server with other facts."""
    return compile_repair(load_spec("openai_compatible").with_overrides(overrides), "up")


def chunk(finish: Any = None, index: Any = 0, members: Mapping[str, Any] | None = None, **delta: Any) -> dict[str, Any]:
    """One chunk of a chat stream."""
    return {
        **MEMBERS,
        **(members or {}),
        "choices": [{"index": index, "delta": delta, "finish_reason": finish}],
    }


def call(index: int | None = None, arguments: Any = None, name: str | None = None, **members: Any) -> dict[str, Any]:
    """One piece of a tool call, with only what was given."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {**({} if index is None else {"index": index}), **members, "function": function}


ROLE = chunk(role="assistant", content="")
STOP = chunk("stop")


def event_of(payload: Any) -> StreamEvent:
    data = msgspec.json.encode(payload)
    return read_event(b"data: " + data + b"\n\n", data)


def raw_body(request: Mapping[str, Any]) -> dict[str, msgspec.Raw]:
    return {name: msgspec.Raw(msgspec.json.encode(value)) for name, value in request.items()}


@dataclass
class Heard:
    """What a client that joins deltas has in the end, choice by choice; text, name and id of a piece are added up."""

    events: list[dict[str, Any]] = field(default_factory=list)
    content: dict[int, str] = field(default_factory=dict)
    reasoning: dict[int, str] = field(default_factory=dict)
    calls: dict[int, list[dict[str, str]]] = field(default_factory=dict)
    finish: dict[int, list[str]] = field(default_factory=dict)
    roles: dict[int, str] = field(default_factory=dict)
    logprobs: dict[int, list[dict[str, Any]]] = field(default_factory=dict)

    @property
    def said(self) -> tuple[str, str, list[tuple[str, str]], list[str]]:
        """Content, reasoning, calls by name and arguments, and finish reasons of the first choice."""
        calls = [(one["name"], one["arguments"]) for one in self.calls.get(0, [])]
        return self.content.get(0, ""), self.reasoning.get(0, ""), calls, self.finish.get(0, [])

    def add(self, payload: dict[str, Any]) -> None:
        self.events.append(payload)
        for choice in payload["choices"]:
            index = choice["index"]
            self._add_delta(index, choice["delta"])
            if choice["finish_reason"] is not None:
                self.finish.setdefault(index, []).append(choice["finish_reason"])
            self.logprobs.setdefault(index, []).extend((choice.get("logprobs") or {}).get("content") or [])

    def _add_delta(self, index: int, delta: dict[str, Any]) -> None:
        self.roles[index] = self.roles.get(index, "") + (delta.get("role") or "")
        assert index in self.content or delta.get("role"), "the first delta of a choice has the role"
        self.content[index] = self.content.get(index, "") + (delta.get("content") or "")
        self.reasoning[index] = self.reasoning.get(index, "") + (delta.get("reasoning_content") or "")
        calls = self.calls.setdefault(index, [])
        for piece in delta.get("tool_calls") or ():
            if piece["index"] == len(calls):
                assert piece["type"] == "function"
                calls.append({"id": "", "name": "", "arguments": ""})
            one = calls[piece["index"]]
            one["id"] += piece.get("id") or ""
            one["name"] += piece["function"].get("name") or ""
            one["arguments"] += piece["function"].get("arguments", "")


def repaired(
    payloads: Iterable[Any],
    provider: str | Repair = "openai_compatible",
    *,
    needs: AnswerNeeds | None = None,
    request: Mapping[str, Any] | None = None,
    done: bool = True,
) -> Heard:
    """What a client hears of a chat stream."""
    heard = Heard()
    for event in repaired_events(
        [event_of(one) for one in payloads], provider, needs=needs, request=request, done=done
    ):
        heard.add(json.loads(event.data))
    return heard


def repaired_text(text: str, size: int = 10_000, provider: str | Repair = "vllm", **options: Any) -> Heard:
    """What a client hears of *text* that comes in pieces of *size* characters."""
    pieces = (text[at : at + size] for at in range(0, len(text), size))
    return repaired([ROLE, *(chunk(content=piece) for piece in pieces), STOP], provider, **options)


def repaired_events(
    events: Sequence[StreamEvent],
    provider: str | Repair = "openai_compatible",
    *,
    needs: AnswerNeeds | None = None,
    request: Mapping[str, Any] | None = None,
    done: bool = True,
    operation: Operation = Operation.CHAT,
) -> list[StreamEvent]:
    """The events that come out of a stream's repair, which plain ones pass by as soon as they may."""
    rules = repair_of(provider) if isinstance(provider, str) else provider
    machine = rules.stream(operation, needs, raw_body(request or {}))
    out: list[StreamEvent] = []
    for event in events:
        if machine.over:
            break
        out += [event] if machine.passes(event) else machine.take(event)
    return out + machine.end(done=done)


def whole(finish: Any = "stop", members: Mapping[str, Any] | None = None, **message: Any) -> dict[str, Any]:
    """A whole chat answer."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {**MEMBERS, "object": "chat.completion", "choices": [choice], "usage": usage, **(members or {})}


def repaired_body(
    body: bytes,
    provider: str | Repair = "openai_compatible",
    *,
    needs: AnswerNeeds | None = None,
    request: Mapping[str, Any] | None = None,
    operation: Operation = Operation.CHAT,
) -> bytes:
    """A whole answer, repaired."""
    rules = repair_of(provider) if isinstance(provider, str) else provider
    return rules.whole(body, read_answer(body), operation, needs, raw_body(request or {}))


def repaired_whole(answer: Any, provider: str | Repair = "openai_compatible", **options: Any) -> dict[str, Any]:
    """A whole answer, repaired and decoded."""
    found: dict[str, Any] = json.loads(repaired_body(msgspec.json.encode(answer), provider, **options))
    return found
