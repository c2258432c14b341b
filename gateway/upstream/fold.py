"""Turns plain requests to the local engine into streamed ones, and the stream back into one answer.

The engine (xllamacpp 2026.10, measured on 2026-11-30) notices that a client has left when it writes to it, or after a
second in which nothing happened in any of its slots. A plain answer is written once, at its end: abandoned beside
others, it would occupy its slot until then, for minutes at worst.
"""

from __future__ import annotations

import msgspec

from adapters import answers
from adapters.errors import ProviderError
from adapters.failures import read_error
from adapters.stream import is_progress, progress_marker
from adapters.types import FailureKind, Operation
from gateway.upstream.sse import SseSplitter

_PROGRESS = progress_marker("prompt_progress")


def as_stream(path: str, body: bytes) -> bytes | None:
    """The streamed form of a plain generation request; None for anything else, which goes as it is."""
    if not path.endswith("/completions"):
        return None
    try:
        members = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        return None  # the engine will say what is wrong with it
    if bytes(members.get("stream", b"false")) not in (b"false", b"null"):
        return None
    members["stream"] = msgspec.Raw(b"true")
    # Something to write while a long prompt is read, so that leaving is noticed then too.
    members["return_progress"] = msgspec.Raw(b"true")
    members["stream_options"] = msgspec.Raw(b'{"include_usage":true}')
    return msgspec.json.encode(members)


def fold(path: str, events: bytes) -> tuple[int, bytes]:
    """Status and body of the plain answer that says the same as a whole stream; INTERRUPTED when it is not whole."""
    payloads = []
    splitter = SseSplitter()
    for event in [*splitter.feed(events), splitter.close()]:
        if event is None or not event.data or event.data == b"[DONE]" or is_progress(event.data, _PROGRESS):
            continue
        if event.data.startswith(b'{"error":'):
            return _status(event.data), event.data
        payloads.append(event.data)
    operation = Operation.CHAT if path.endswith("/chat/completions") else Operation.COMPLETIONS
    try:
        return 200, answers.fold(payloads, operation, usage_per_choice=True)
    except answers.UnreadableError as error:
        message = "The local engine ended its answer before it was complete."
        raise ProviderError(FailureKind.INTERRUPTED, message, detail=str(error)) from None


def _status(error: bytes) -> int:
    fields = read_error(error)
    return fields.status or 500 if fields is not None else 500
