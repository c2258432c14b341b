"""What stands in blocks of a stream that are no events of it: comments, several payloads, errors in the open."""

from __future__ import annotations

from typing import Final

import msgspec

from adapters.finite import with_finite_numbers

DONE: Final = b"[DONE]"


def payloads_in(data: bytes) -> list[bytes] | None:
    """The payloads that *data* holds, an event's that is not JSON as a whole; None where it is broken.

    A comment that was sent as data holds none (mnfst/llm-gateway#2053). Several lines of data are several payloads
    where the blank lines between the events are missing (Wei-Shaw/sub2api#1471), and some say ``data:`` twice
    (openclaw/openclaw#97474). What is JSON but for numbers that JSON does not have is one payload.
    """
    if (finite := with_finite_numbers(data)) is not None:
        return [finite]
    lines = [_without_field(line.strip()) for line in data.split(b"\n")]
    found = [line for line in lines if line and not line.startswith(b":")]
    if found == [data] or not all(line == DONE or line.startswith(b"{") for line in found):
        return None
    return found


def unframed(block: bytes) -> list[bytes]:
    """The payloads of a *block* without any data field.

    A server that fails in mid-stream may write its error as a line of ``error:`` (ggml-org/llama.cpp), or as a body of
    its own that knows nothing of the stream around it (maximhq/bifrost#5262).
    """
    text = block.strip().removeprefix(b"error:").strip()
    if not text.startswith((b"{", b"[")):
        return []
    try:
        if text.startswith(b"["):  # Gemini's errors come in a list
            return [bytes(one) for one in msgspec.json.decode(text, type=list[msgspec.Raw])]
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return payloads_in(text) or []
    return [text]


def _without_field(line: bytes) -> bytes:
    while line.startswith(b"data:"):
        line = line[5:].strip()
    return line
