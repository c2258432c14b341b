"""An answer that we have whole, in the form in which one comes from an upstream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from adapters import answers
from adapters.shapes.base import Answer
from adapters.types import Operation
from gateway.pipeline.stream_out import DONE
from gateway.upstream.base import BodySink

_JSON: Final[Mapping[str, str]] = {"content-type": "application/json"}
_EVENTS: Final[Mapping[str, str]] = {"content-type": "text/event-stream"}


class Told:
    """Implements `UpstreamResponse`: a whole answer, or with *stream* the same as a stream of few events."""

    __slots__ = ("_body", "headers", "status")

    def __init__(self, answer: Answer, operation: Operation, *, stream: bool) -> None:
        self.status: int = 200
        self.headers: Mapping[str, str] = _EVENTS if stream else _JSON
        body = msgspec.json.encode(answer)
        if stream:
            body = b"".join(b"data: %b\n\n" % payload for payload in answers.unfold(body, operation)) + DONE
        self._body = body

    @classmethod
    def of_events(cls, events: bytes) -> Told:
        """A stream whose events are known already."""
        told = cls.__new__(cls)
        told.status, told.headers, told._body = 200, _EVENTS, events
        return told

    async def read(self, limit_bytes: int) -> bytes:
        return self._body

    def stream(self, sink: BodySink) -> None:
        sink.feed(self._body)
        sink.finish(None)

    def pause(self) -> None:
        """Nothing is in flight."""

    def resume(self) -> None:
        """Nothing is in flight."""

    def close(self) -> None:
        """Nothing is open."""
