"""An answer that is here whole, in the form in which one comes from an upstream."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.upstream.base import BodySink


class HeldResponse:
    """Implements `UpstreamResponse`: nothing of it is still to come, and nothing has to be given back."""

    __slots__ = ("_body", "headers", "status")

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self._body = body

    async def read(self, limit_bytes: int) -> bytes:
        """The body; whoever made it has seen to its size."""
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
