"""What the mock upstream says: answers and streams as the bytes that go on the wire."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

EVENTS: Final = 64
"""Events with something to say in each stream; finish reason, usage and [DONE] follow in one piece, as providers do."""

_ID: Final = {"id": "chatcmpl-0f7a3c1e9b", "created": 1796030000, "model": "mock-70b"}
_USAGE: Final = {"prompt_tokens": 58, "completion_tokens": EVENTS, "total_tokens": 58 + EVENTS}
_TEXT: Final = (
    "A gateway stands between those who ask and those who answer, and is at its best when neither of them can tell "
    "that it is there."
)


def scripts() -> dict[str, list[bytes]]:
    """The pieces of each script: the first leaves at once, the others as far apart as the request says."""
    return {
        "models": [_whole({"object": "list", "data": [{"id": "mock-70b", "object": "model"}]})],
        "text": [_whole(_completion({"role": "assistant", "content": _TEXT}, "stop"))],
        "calls": [_whole(_completion({"role": "assistant", "content": None, "tool_calls": _calls()}, "tool_calls"))],
        "text-stream": _stream(_text_deltas(), "stop"),
        # Pieces of a call without index, id or type after the first: clients that join by index lose them.
        "bare-calls-stream": _stream(_bare_call_deltas(), "tool_calls"),
        # Reasoning under a name that OpenAI's clients do not read.
        "reasoning-stream": _stream(_reasoning_deltas(), "stop"),
    }


def write_scripts(path: Path, contents: Mapping[str, Sequence[bytes]]) -> None:
    """Write *contents* in the form that mock.c reads."""
    lines: list[bytes] = []
    for name, pieces in contents.items():
        lines.append(b"%b %d\n" % (name.encode(), len(pieces)))
        lines += [b"%d\n%b" % (len(piece), piece) for piece in pieces]
    path.write_bytes(b"".join(lines))


def _text_deltas() -> Iterable[dict[str, Any]]:
    yield {"role": "assistant", "content": "word"}
    for number in range(1, EVENTS):
        yield {"content": f" word{number}"}


def _reasoning_deltas() -> Iterable[dict[str, Any]]:
    yield {"role": "assistant", "reasoning": "thought"}
    for number in range(1, EVENTS - 1):
        yield {"reasoning": f" thought{number}"}
    yield {"content": "The answer."}


def _bare_call_deltas() -> Iterable[dict[str, Any]]:
    first = {"id": "call_a1", "type": "function", "function": {"name": "look_up", "arguments": '{"words":"'}}
    yield {"role": "assistant", "content": None, "tool_calls": [first]}
    for number in range(1, EVENTS - 1):
        yield {"tool_calls": [{"function": {"arguments": f"word{number} "}}]}
    yield {"tool_calls": [{"function": {"arguments": '"}'}}]}


def _calls() -> list[dict[str, Any]]:
    function = {"name": "look_up", "arguments": '{"words":"foxes and rivers","most":3}'}
    return [{"id": "call_a1", "type": "function", "function": function}]


def _completion(message: dict[str, Any], reason: str) -> dict[str, Any]:
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}
    return {**_ID, "object": "chat.completion", "choices": [choice], "usage": _USAGE}


def _stream(deltas: Iterable[dict[str, Any]], reason: str) -> list[bytes]:
    events = [_chunk([_choice(delta, None)]) for delta in deltas]
    end = [_chunk([_choice({}, reason)]), _chunk([], usage=_USAGE), b"data: [DONE]\n\n"]
    first, *others = [_chunked(event) for event in events]
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    return [head + first, *others, b"".join(_chunked(event) for event in end) + b"0\r\n\r\n"]


def _choice(delta: dict[str, Any], reason: str | None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}


def _chunk(choices: list[dict[str, Any]], **others: Any) -> bytes:
    return b"data: %b\n\n" % _json({**_ID, "object": "chat.completion.chunk", "choices": choices, **others})


def _chunked(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _whole(answer: dict[str, Any]) -> bytes:
    body = _json(answer)
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
