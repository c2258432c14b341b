"""What an OpenAI-like upstream says, for scripts: whole answers, events, streams and refusals."""

from __future__ import annotations

import json
from typing import Any

from tests.fakes.scripted_server import LAST_CHUNK, Script, answer, chunk, chunked_head

DONE = b"data: [DONE]\n\n"
USAGE = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}


def completion(text: str = "Hello there.", model: str = "up-real", **members: Any) -> dict[str, Any]:
    """A whole chat answer."""
    message = {"role": "assistant", "content": text}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": USAGE,
        **members,
    }


def whole(text: str = "Hello there.", headers: str = "", **members: Any) -> bytes:
    """A whole chat answer, ready for the wire."""
    return answer(json.dumps(completion(text, **members)).encode(), headers=headers)


def event(payload: Any) -> bytes:
    return b"data: " + json.dumps(payload).encode() + b"\n\n"


def delta(finish: str | None = None, model: str = "up-real", index: int = 0, **fields: Any) -> bytes:
    """One event of a chat stream whose delta holds *fields*."""
    choice = {"index": index, "delta": fields, "finish_reason": finish}
    return event(
        {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model, "choices": [choice]}
    )


def usage_chunk(usage: Any = USAGE, choices: Any = ()) -> bytes:
    members = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "up-real"}
    return event({**members, "choices": list(choices), "usage": usage})


ROLE = delta(role="assistant", content="")
STOP = delta(finish="stop")


def words(*texts: str) -> list[bytes]:
    """An event for each text."""
    return [delta(content=text) for text in texts]


def stream(*events: bytes, end: bool = True) -> Script:
    """A stream of *events*, or pieces of such, one write each; without *end* the body stays open."""
    return [chunked_head(), *(chunk(one) for one in events), *([LAST_CHUNK] if end else [])]


def good_stream(*texts: str) -> Script:
    """A complete stream with usage."""
    return stream(ROLE, *words(*(texts or ("Hello", " there", "."))), STOP, usage_chunk(), DONE)


def refusal(status: int, message: str = "no", headers: str = "", **members: Any) -> bytes:
    """An error in OpenAI's envelope."""
    body = {"error": {"message": message, "type": "some_error", "param": None, "code": None, **members}}
    return answer(json.dumps(body).encode(), status=status, headers=headers)


def payloads(body: bytes) -> list[Any]:
    """The decoded events of a stream; ``[DONE]`` stays a string."""
    found = [part[6:] for part in body.split(b"\n\n") if part.startswith(b"data: ")]
    return ["[DONE]" if data == b"[DONE]" else json.loads(data) for data in found]


def text_of(body: bytes) -> str:
    """The content of a chat stream, joined."""
    chunks = [one for one in payloads(body) if isinstance(one, dict)]
    return "".join(
        choice["delta"].get("content") or "" for one in chunks for choice in one.get("choices", ()) if "delta" in choice
    )
