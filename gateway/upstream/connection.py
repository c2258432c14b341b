"""One HTTP/1.1 connection: writes a request, parses the answer, and knows whether it can be used again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import httptools

from adapters.errors import ProviderError
from adapters.types import FailureKind
from gateway.upstream.response import Http1Response
from gateway.upstream.whole_answer import WholeAnswer

if TYPE_CHECKING:
    from gateway.upstream.pool import OriginPool

MAX_HEAD_BYTES = 64 * 1024
MAX_HEADERS = 200
MAX_INTERIM_ANSWERS = 20

# From here on two buffers are cheaper to hand over than to join.
_LARGE_BODY_BYTES = 64 * 1024

_NOT_HTTP = (httptools.HttpParserError, httptools.HttpParserUpgrade)

# Names as upstreams spell them, to what we call them: nearly all headers are old acquaintances.
_header_names: dict[bytes, str] = {}
_MAX_HEADER_NAMES = 1024


class StaleConnectionError(Exception):
    """A kept-alive connection was closed by the other side before a byte of the answer came."""


class _StopParsingError(Exception):
    """Raised out of a parser callback; what is wrong stands in the connection."""


class Connection(asyncio.Protocol):
    """Carries one request at a time. It goes back to its pool by itself as soon as an answer is complete."""

    __slots__ = (
        "_failure",
        "_feed",
        "_header_count",
        "_headers",
        "_interim_answers",
        "_loop",
        "_parser",
        "_paused",
        "_pieces",
        "_pool",
        "_read_bytes",
        "_response",
        "_reusable",
        "_reused",
        "_transport",
        "_waiter",
        "idle_since",
        "lost",
        "on_body",
        "resting",
    )

    _transport: asyncio.Transport
    _parser: httptools.HttpResponseParser

    def __init__(self, pool: OriginPool, loop: asyncio.AbstractEventLoop) -> None:
        self._pool = pool
        self._loop = loop
        self.lost = False
        self._paused = False
        self._reused = False
        self._waiter: asyncio.Future[Http1Response | WholeAnswer] | None = None
        self._response: Http1Response | None = None
        self._feed: Callable[[bytes], None] | None = None
        """Where the pieces of the body go, once a first one has gone there."""
        self._failure: ProviderError | None = None
        self._pieces: list[bytes] = []
        self.idle_since = 0
        self.resting = True
        """No answer is expected: before the first request, between requests, and after the end."""
        # The parser calls what it finds under this name; a list's own method spares a Python frame for each piece.
        self.on_body = self._pieces.append
        self._parser = httptools.HttpResponseParser(self)

    # What the pool and the client ask

    def request(self, head: tuple[bytes, ...], body: bytes) -> asyncio.Future[Http1Response | WholeAnswer]:
        """Write a request, whose *head* is in pieces; the future gives the response once its head is here."""
        self._waiter = waiter = self._loop.create_future()
        self._read_bytes = self._interim_answers = 0
        self._reusable = self.resting = False
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
        self._transport = cast(asyncio.Transport, transport)
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
        try:
            self._parser.feed_data(data)
        except _NOT_HTTP as error:
            self._parsed(len(data), self._broken(error))
            return
        pieces = self._pieces
        if len(pieces) == 1 and not self.resting:
            self._read_bytes = 0
            feed(pieces.pop())
        else:
            self._parsed(len(data))

    def _receive(self, data: bytes) -> None:
        """Take bytes of an answer of which nothing has been handed on yet, or that is not taken piece by piece."""
        if self.resting:
            # Nobody asked for these bytes, so whatever came next could not be told from them.
            self.abort()
            return
        if self._response is None and not self._read_bytes:
            answer = self._pool.answers.read(data)
            if answer is not None and self._take_whole(answer):
                return
        failure = None
        self._read_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except _NOT_HTTP as error:
            failure = self._broken(error)
        self._parsed(0, failure)

    def _broken(self, error: Exception) -> ProviderError | None:
        if self.resting:
            self._reusable = False  # the answer is whole; only what follows it is broken
            return None
        return self._failure or self._error(FailureKind.MALFORMED, "the answer is not proper HTTP", repr(error))

    def _parsed(self, size: int, failure: ProviderError | None = None) -> None:
        """Hand on what the parser has made of a read, of which *size* bytes are still to be counted."""
        self._read_bytes += size
        response = self._response
        if response is None:
            if failure is None and self._read_bytes > MAX_HEAD_BYTES:
                failure = self._error(FailureKind.TOO_LARGE, "the answer's headers are too large")
            if failure is not None:
                self._fail(failure)
            return
        pieces = self._pieces
        body = b""
        if pieces:
            body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
            pieces.clear()
        if self.resting:
            self._response = self._feed = None
            self._settle()
            response.end(body)
            return
        if body:
            response.began = True
            self._read_bytes = 0  # counts from here on what is no body: extensions of chunks, and trailers
            response.take(body)
            if self._response is response:
                self._feed = response.feed
        elif failure is None and self._read_bytes > 2 * MAX_HEAD_BYTES:  # the first of it can have been the head
            failure = self._error(FailureKind.TOO_LARGE, "the answer's trailers are too large")
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
            if self._reused and not self._read_bytes:
                waiter.set_exception(StaleConnectionError())
            else:
                self._fail(self._error(FailureKind.RESET, "the connection broke before the answer", detail))
        self._detach()
        # Both lead back here, by bound methods and by a traceback: without them there is no cycle to collect.
        del self._parser
        self._failure = None

    # What the parser tells

    def on_message_begin(self) -> None:
        if self.resting:
            raise _StopParsingError
        self._headers: dict[str, str] = {}
        self._header_count = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._response is not None:
            return  # a trailer
        key = _header_names.get(name) or _learn_header_name(name)
        headers = self._headers
        self._header_count += 1
        text = value.decode("latin-1")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        headers = self._headers
        if self._header_count > MAX_HEADERS or (self._read_bytes > MAX_HEAD_BYTES and _size(headers) > MAX_HEAD_BYTES):
            self._stop(FailureKind.TOO_LARGE, "the answer's headers are too large")
        if status < 200:
            self._interim_answers += 1
            if status < 100 or status == 101 or self._interim_answers > MAX_INTERIM_ANSWERS:
                self._stop(FailureKind.MALFORMED, "the answer is not proper HTTP", f"status {status}")
            headers.clear()
            return
        waiter = self._waiter
        if waiter is None or waiter.done():
            raise _StopParsingError  # cancelled a moment ago; whoever did it drops the connection
        self._waiter = None
        try:
            self._response = response = Http1Response(self, status, headers)
        except ProviderError as error:
            self._failure = error
            self._waiter = waiter
            raise _StopParsingError from None
        waiter.set_result(response)

    def on_message_complete(self) -> None:
        if self._response is not None:
            self.resting = True
            self._reusable = self._parser.should_keep_alive()

    # The end of an answer

    def _take_whole(self, answer: WholeAnswer) -> bool:
        """Hand over an answer that came in one read; False if whoever waited for it has just left."""
        waiter = self._waiter
        if waiter is None or waiter.done():
            return False
        self._waiter = None
        self.resting = self._reusable = True
        self._settle()
        waiter.set_result(answer)
        return True

    def _settle(self) -> None:
        """The answer is whole: go back to the pool, or close."""
        transport, pool = self._transport, self._pool
        if transport.get_write_buffer_size():
            transport.abort()  # the answer came before our upload ended: what is left of it must not be sent
        elif self._reusable and pool.keep_alive and not self.lost and not transport.is_closing():
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
        self.resting = True
        self._response = self._waiter = self._feed = None
        self._pool.idle.pop(self, None)

    def _stop(self, kind: FailureKind, words: str, detail: str = "") -> None:
        self._failure = self._error(kind, words, detail)
        raise _StopParsingError

    def _error(self, kind: FailureKind, words: str, detail: str = "") -> ProviderError:
        return ProviderError(kind, f"{self._pool.name}: {words}", detail=detail)


def _learn_header_name(name: bytes) -> str:
    key = name.lower().decode("latin-1")
    if len(_header_names) < _MAX_HEADER_NAMES:
        _header_names[name] = key
    return key


def _size(headers: dict[str, str]) -> int:
    return sum(len(name) + len(value) + 4 for name, value in headers.items())
