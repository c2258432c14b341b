"""An answer that we have whole, in the form in which one comes from an upstream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from adapters import answers
from adapters.shapes.base import Answer
from adapters.types import Operation
from gateway.pipeline.stream_out import DONE
from gateway.upstream.held import HeldResponse

_JSON: Final[Mapping[str, str]] = {"content-type": "application/json"}
_EVENTS: Final[Mapping[str, str]] = {"content-type": "text/event-stream"}


class Told(HeldResponse):
    """A whole answer of ours, or with *stream* the same as a stream of few events."""

    __slots__ = ()

    def __init__(self, answer: Answer, operation: Operation, *, stream: bool) -> None:
        body = msgspec.json.encode(answer)
        if stream:
            body = b"".join(b"data: %b\n\n" % payload for payload in answers.unfold(body, operation)) + DONE
        super().__init__(200, _EVENTS if stream else _JSON, body)

    @classmethod
    def of_events(cls, events: bytes) -> HeldResponse:
        """A stream whose events are known already."""
        return HeldResponse(200, _EVENTS, events)
