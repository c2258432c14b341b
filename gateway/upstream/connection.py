"""One HTTP/1.1 connection: writes a request, hands on the answer, and knows whether it can be used again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from adapters.errors import ProviderError
from adapters.types import FailureKind
from gateway.gathered import GatheredTransport, Outbox
from gateway.upstream.response import Http1Response
from gateway.upstream.response_parser import MAX_HEAD_BYTES, NOT_HTTP, ResponseParser
from gateway.upstream.whole_answer import WholeAnswer

if TYPE_CHECKING:
    from gateway.upstream.pool import OriginPool

# From here on two buffers are cheaper to hand over than to join.
_LARGE_BODY_BYTES = 64 * 1024


class StaleConnectionError(Exception):
    """A kept-alive connection was closed by the other side before a byte of the answer came."""


class Connection(asyncio.Protocol):
    """Carries one request at a time. It goes back to its pool by itself as soon as an answer is complete."""

    __slots__ = (
        "_feed",
        "_loop",
        "_parser",
        "_paused",
        "_pool",
        "_response",
        "_reused",
        "_transport",
        "_waiter",
        "idle_since",
        "lost",
    )

    _transport: GatheredTransport

    def __init__(self, pool: OriginPool, loop: asyncio.AbstractEventLoop) -> None:
        self._pool = pool
        self._loop = loop
        self.lost = self._paused = self._reused = False
        self._parser = ResponseParser(pool.name)
        self._waiter: asyncio.Future[Http1Response | WholeAnswer] | None = None
        """Waits for the head of an answer."""
        self._response: Http1Response | None = None
        """Waits for more of a body. With neither of the two, no answer is expected."""
        self._feed: Callable[[bytes], None] | None = None
        """Where the pieces of the body go, once a first one has gone there."""
        self.idle_since = 0

    # What the pool and the client ask

    def request(self, head: tuple[bytes, ...], body: bytes) -> asyncio.Future[Http1Response | WholeAnswer]:
        """Write a request, whose *head* is in pieces; the future gives the response once its head is here."""
        self._waiter = waiter = self._loop.create_future()
        if len(body) < _LARGE_BODY_BYTES:
            self._transport.write(b"".join((*head, body)))
        else:
            self._transport.writelines((*head, body))
        return waiter

    def abort(self) -> None:
        """Drop the connection at once, with whatever was going on."""
        self._detach()
        if not self.lost:
            self._transport.abort()

    def close(self) -> None:
        """Close an idle connection properly."""
        self._detach()
        self._transport.close()

    def forsake(self) -> None:
        """Nobody waits any more for it to open, so its pool never has it, whatever the transport still tells."""
        self.lost = True
        self._pool.forget(self)

    def pause_reading(self) -> None:
        if not self._paused and not self.lost:
            self._paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self._paused and not self.lost:
            self._paused = False
            self._transport.resume_reading()

    # What the transport tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = GatheredTransport(cast(asyncio.Transport, transport), Outbox.of(self._loop))
        if self.lost:
            self._transport.abort()
        else:
            self._pool.connections.add(self)

    def data_received(self, data: bytes) -> None:
        feed = self._feed
        if feed is None:
            self._receive(data)
            return
        # A stream on its way: nearly every read is one more piece of it.
        parser = self._parser
        try:
            parser.http.feed_data(data)
        except NOT_HTTP as error:
            self._parsed(len(data), parser.failure(error))
            return
        pieces = parser.pieces
        if len(pieces) == 1:
            parser.read_bytes = 0
            feed(pieces.pop())
        else:
            self._parsed(len(data))

    def _receive(self, data: bytes) -> None:
        """Take bytes of an answer of which nothing has been handed on yet, or that is not taken piece by piece."""
        parser = self._parser
        if self._response is None:
            if self._waiter is None or self._transport.unsent:
                self._take_unasked()
                return
            if not parser.read_bytes:
                answer = self._pool.answers.read(data)
                if answer is not None and self._take_whole(answer):
                    return
        failure = None
        parser.read_bytes += len(data)
        try:
            parser.http.feed_data(data)
        except NOT_HTTP as error:
            failure = parser.failure(error)
        self._parsed(0, failure)

    def _parsed(self, size: int, failure: ProviderError | None = None) -> None:
        """Hand on what the parser has made of a read, of which *size* bytes are still to be counted."""
        parser, response = self._parser, self._response
        if response is None:
            if not parser.status:
                if failure is None and parser.read_bytes > MAX_HEAD_BYTES:
                    failure = parser.too_large("headers")
                if failure is not None:
                    self._fail(failure)
                return
            waiter = self._waiter
            if waiter is None or waiter.done():
                self.abort()  # cancelled a moment ago
                return
            try:
                response = Http1Response(self, parser.status, parser.headers)
            except ProviderError as error:
                self._fail(error.with_traceback(None))  # a traceback would lead back to the waiter
                return
            self._response, self._waiter = response, None
            waiter.set_result(response)
        body = parser.last
        if body is not None:
            parser.status, parser.last = 0, None
            self._response = self._feed = None
            self._settle(parser.keep_alive)
            response.end(body)
            return
        pieces = parser.pieces
        if pieces:
            body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
            pieces.clear()
            response.began = True
            parser.read_bytes = 0  # counts from here on what is no body: extensions of chunks, and trailers
            response.take(body)
            if self._response is response:
                self._feed = response.feed
        else:
            parser.read_bytes += size
            if failure is None and parser.read_bytes > 2 * MAX_HEAD_BYTES:  # the first of it can have been the head
                failure = parser.too_large("trailers")
        if failure is not None:
            self._fail(failure)

    def eof_received(self) -> None:
        # Between this and connection_lost nobody should pick the connection up again.
        self._pool.idle.pop(self, None)

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        self._pool.forget(self)
        detail = "" if exc is None else f"{type(exc).__name__}: {exc}"
        response, waiter = self._response, self._waiter
        if response is not None:
            if exc is None and response.ends_with_connection:
                self._response = None
                response.finish(None)
            else:
                kind = FailureKind.INTERRUPTED if response.began else FailureKind.RESET
                self._fail(self._error(kind, "the connection broke during the answer", detail))
        elif waiter is not None and not waiter.done():
            if self._reused and not self._parser.read_bytes:
                waiter.set_exception(StaleConnectionError())
            else:
                self._fail(self._error(FailureKind.RESET, "the connection broke before the answer", detail))
        self._detach()
        self._parser.close()

    def _take_unasked(self) -> None:
        """Drop the connection: nobody asked for these bytes, so whatever came next could not be told from them."""
        waiter = self._waiter
        self.abort()
        if waiter is not None and not waiter.done():
            # Its request has not left yet, so it may be sent elsewhere.
            if self._reused:
                waiter.set_exception(StaleConnectionError())
            else:
                waiter.set_exception(self._error(FailureKind.RESET, "sent something before it was asked"))

    # The end of an answer

    def _take_whole(self, answer: WholeAnswer) -> bool:
        """Hand over an answer that came in one read; False if whoever waited for it has just left."""
        waiter = self._waiter
        if waiter is None or waiter.done():
            return False
        self._waiter = None
        self._settle(True)
        waiter.set_result(answer)
        return True

    def _settle(self, reusable: bool) -> None:
        """The answer is whole: go back to the pool, or close."""
        transport, pool = self._transport.transport, self._pool  # an answer has come, so that nothing waits any more
        if transport.get_write_buffer_size():
            transport.abort()  # the answer came before our upload ended: what is left of it must not be sent
        elif reusable and pool.keep_alive and not self.lost and not transport.is_closing():
            if self._paused:
                self.resume_reading()
            self._reused = True
            pool.release(self)
        else:
            transport.close()

    def _fail(self, error: ProviderError) -> None:
        response, waiter = self._response, self._waiter
        self.abort()
        if response is not None:
            response.finish(error)
        elif waiter is not None and not waiter.done():
            waiter.set_exception(error)

    def _detach(self) -> None:
        self._response = self._waiter = self._feed = None
        self._pool.idle.pop(self, None)

    def _error(self, kind: FailureKind, words: str, detail: str = "") -> ProviderError:
        return ProviderError(kind, f"{self._pool.name}: {words}", detail=detail)
