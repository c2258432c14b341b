"""Answers of an OpenAI-like provider in the words of a test, whole or streamed as the request has it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from adapters.simulator.wire import Answer as Played
from adapters.simulator.wire import one_piece

_ARGUMENTS: Final = {"look": '{"place": "here"}', "wait": "{}"}
_USAGE: Final = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}


def said(
    body: Mapping[str, Any],
    *texts: str,
    calls: Sequence[str] = (),
    finish: str | None = "stop",
    message: Mapping[str, Any] | None = None,
    members: Mapping[str, Any] | None = None,
    last: Mapping[str, Any] | None = None,
    usage: Mapping[str, Any] | None = _USAGE,
) -> Played:
    """A choice for each of *texts*, and one more that makes *calls* of the tools that tests have.

    *message* are further members of each message, *members* of the answer or of its last chunk, *last* of that alone;
    *finish* is the reason that texts end for.
    """
    made: list[tuple[dict[str, Any], str | None]] = [({"content": text, **(message or {})}, finish) for text in texts]
    if calls:
        listed = [
            {"id": f"call_{name}", "type": "function", "function": {"name": name, "arguments": _ARGUMENTS[name]}}
            for name in calls
        ]
        made.append(({"content": None, "tool_calls": listed}, "tool_calls"))
    head: dict[str, Any] = {"id": "chatcmpl-1", "created": 1, "model": body["model"]}
    if not body.get("stream"):
        choices = [
            {"index": index, "message": {"role": "assistant", **one}, "logprobs": None, "finish_reason": reason}
            for index, (one, reason) in enumerate(made)
        ]
        answer = {**head, "object": "chat.completion", "choices": choices, "usage": _USAGE, **(members or {})}
        return one_piece(200, json.dumps(answer).encode(), {})
    head["object"] = "chat.completion.chunk"
    events: list[dict[str, Any]] = []
    for index, (one, _) in enumerate(made):
        events.append(_chunk(head, index, {"role": "assistant", "content": ""}))
        found: list[dict[str, Any]] = one.get("tool_calls") or []
        numbered = [{"index": place, **call} for place, call in enumerate(found)]
        rest = {name: value for name, value in one.items() if name not in ("content", "tool_calls")}
        pieces = [rest] if rest else []
        pieces += [{"content": one["content"]}] if one["content"] else []
        events += [_chunk(head, index, piece) for piece in (*pieces, *([{"tool_calls": numbered}] if numbered else ()))]
    events += [_chunk(head, index, {}, reason) for index, (_, reason) in enumerate(made)]
    events[-1] |= {**(members or {}), **(last or {})}
    if usage is not None:
        events.append({**head, "choices": [], "usage": usage})
    steps = [b"data: %b\n\n" % json.dumps(one).encode() for one in events]
    return Played(200, iter((*steps, b"data: [DONE]\n\n")), {"content-type": "text/event-stream"})


def _chunk(head: Mapping[str, Any], index: int, delta: Mapping[str, Any], reason: str | None = None) -> dict[str, Any]:
    return {**head, "choices": [{"index": index, "delta": delta, "logprobs": None, "finish_reason": reason}]}
