"""An answer as it comes off a connection: read whole, or pushed into a sink piece by piece."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from adapters.errors import ProviderError
from adapters.types import FailureKind
from gateway.upstream.base import BodySink
from gateway.upstream.inflate import inflater_for

if TYPE_CHECKING:
    from gateway.upstream.connection import Connection

# What may wait here before somebody reads or streams; one more socket read can come on top.
MAX_UNREAD_BYTES = 256 * 1024

# What leaves the body as it is; the second is of old, and means nothing.
_PLAIN_CODINGS = frozenset({"chunked", "identity"})


class Http1Response:
    """Implements `UpstreamResponse`. It outlives its connection, which leaves as soon as the body is complete."""

    __slots__ = (
        "_done",
        "_error",
        "_inflater",
        "_limit",
        "_parts",
        "_paused",
        "_sink",
        "_size",
        "_waiter",
        "began",
        "connection",
        "feed",
        "headers",
        "status",
    )

    def __init__(self, connection: Connection, status: int, headers: Mapping[str, str]) -> None:
        self.connection: Connection | None = connection
        self.status = status
        self.headers = headers
        self.began = False
        """Something of the body has come."""
        self.feed: Callable[[bytes], None] | None = None
        """Takes the body's pieces in place of `take`, once a sink wants them as they come."""
        self._parts: list[bytes] = []
        self._size = 0
        self._limit: int | None = None
        self._sink: BodySink | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._error: ProviderError | None = None
        self._done = False
        self._paused = False
        coding = headers.get("transfer-encoding")
        if coding is not None and coding.strip().lower() not in _PLAIN_CODINGS:
            words = "the upstream answered in a transfer coding that was not asked for"
            raise ProviderError(FailureKind.MALFORMED, words, detail=f"transfer-encoding: {coding[:40]!r}")
        encoding = headers.get("content-encoding")
        self._inflater = inflater_for(encoding) if encoding is not None else None

    # The contract

    async def read(self, limit_bytes: int) -> bytes:
        if not self._done:
            self._limit = limit_bytes
            self._check_limit()
        if not self._done:
            assert self.connection is not None
            self.connection.resume_reading()
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            except asyncio.CancelledError:
                self.close()
                raise
            finally:
                self._waiter = None
        if self._error is not None:
            self._parts.clear()
            raise self._error
        if self._size > limit_bytes:
            raise _too_large(limit_bytes)
        parts = self._parts
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def stream(self, sink: BodySink) -> None:
        self._sink = sink
        if self._parts:
            data = b"".join(self._parts)
            self._parts.clear()
            sink.feed(data)
        if self._sink is None:
            return  # closed by the sink
        if self._inflater is None:
            self.feed = sink.feed
        if self._done:
            sink.finish(self._error)
        elif not self._paused and self.connection is not None:
            self.connection.resume_reading()

    def pause(self) -> None:
        self._paused = True
        if self.connection is not None:
            self.connection.pause_reading()

    def resume(self) -> None:
        self._paused = False
        if self.connection is not None:
            self.connection.resume_reading()

    def close(self) -> None:
        self._sink = self.feed = None
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.abort()
        if not self._done:
            self._done = True
            self._error = ProviderError(FailureKind.INTERRUPTED, "the answer was given up before its end")
            self._parts.clear()

    # What the connection tells

    @property
    def ends_with_connection(self) -> bool:
        """The answer has no length of its own."""
        coding = self.headers.get("transfer-encoding", "").strip().lower()
        return coding != "chunked" and "content-length" not in self.headers

    def take(self, data: bytes) -> None:
        """Take the next piece of the body."""
        if self._inflater is not None:
            try:
                data = self._inflater.feed(data)
            except ProviderError as error:
                self._break_off(error)
                return
            if not data:
                return
        sink = self._sink
        if sink is not None:
            sink.feed(data)
        elif not self._done:
            self._parts.append(data)
            self._size += len(data)
            self._check_limit()

    def end(self, last: bytes) -> None:
        """The body is whole with these bytes, which may be none."""
        if self._inflater is None and self._sink is None and self._waiter is None and not self._done:
            # The usual answer: all of it in one read, before anybody has asked for it.
            self.connection = None
            if last:
                self._parts.append(last)
                self._size += len(last)
            self._done = True
            return
        self.connection = None
        if last:
            self.take(last)
        self.finish(None)

    def finish(self, error: ProviderError | None) -> None:
        """The body is over. Ignored when that is known already."""
        if self._done:
            return
        if error is None and self._inflater is not None:
            try:
                self._inflater.finish()
            except ProviderError as broken:
                error = broken
        self._done = True
        self._error = error
        self.connection = None
        if self._sink is not None:
            self._sink.finish(error)
        elif self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _check_limit(self) -> None:
        if self._limit is None:
            if self._size > MAX_UNREAD_BYTES and self.connection is not None:
                self.connection.pause_reading()
        elif self._size > self._limit:
            self._break_off(_too_large(self._limit))

    def _break_off(self, error: ProviderError) -> None:
        connection = self.connection
        self.finish(error)
        if connection is not None:
            connection.abort()


def _too_large(limit_bytes: int) -> ProviderError:
    return ProviderError(FailureKind.TOO_LARGE, f"the upstream's answer is larger than {limit_bytes} bytes")
