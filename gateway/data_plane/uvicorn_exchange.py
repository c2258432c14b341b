"""One request on a connection of `DataPlaneProtocol`, and the answer to it, written straight to the transport."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from gateway.data_plane.errors import error_body, error_headers
from gateway.data_plane.exchange import ClientHead, Handler
from gateway.data_plane.request_head import CLIENT_LEFT
from gateway.errors import DrainingError, GatewayError
from gateway.gathered import GatheredTransport
from gateway.request_id import request_id_of

if TYPE_CHECKING:
    from gateway.data_plane.uvicorn_connection import UvicornConnection

_log = logging.getLogger(__name__)

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_CLOSE = b"connection: close\r\n"
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class _NoEvent:
    """uvicorn sets the event a cycle waits on; an exchange waits on none."""

    def set(self) -> None:
        pass


class _RenderedHeaders:
    """The headers uvicorn adds to every answer, which it changes once a second, and their bytes."""

    defaults: object = None
    block: bytes = b""

    def render(self, defaults: Sequence[tuple[bytes, bytes]]) -> None:
        self.defaults = defaults
        self.block = b"".join([b"%b: %b\r\n" % pair for pair in defaults])


_rendered = _RenderedHeaders()


class UvicornExchange(msgspec.Struct, eq=False):
    """An `Exchange` that stands where uvicorn keeps its ``RequestResponseCycle``.

    uvicorn reads ``response_complete`` and writes ``keep_alive`` and ``disconnected``; having them here is what lets
    its pipelining, its shutdown and its accounting of connections work unchanged.
    """

    message_event: ClassVar[_NoEvent] = _NoEvent()

    _protocol: UvicornConnection
    _transport: GatheredTransport
    _handler: Handler | None
    head: ClientHead
    peer: str
    body: bytes | bytearray = b""
    started: bool = False
    paused: bool = False
    on_flow: Callable[[bool], None] | None = None

    keep_alive: bool = True
    http_1_0: bool = False
    continued: bool = False
    complete: bool = False
    """True once the whole body has been read."""
    refusal: GatewayError | None = None
    """Set instead of running the handler."""
    disconnected: bool = False
    response_complete: bool = False
    task: asyncio.Task[None] | None = None
    _chunked: bool = False

    # The exchange, as the handler sees it

    def respond(self, status: int, headers: bytes, body: bytes) -> None:
        if self.disconnected or self.started:
            return
        self.started = True
        protocol = self._protocol
        if protocol.plane.draining:
            self.keep_alive = False
        defaults = protocol.server_state.default_headers
        if defaults is not _rendered.defaults:
            _rendered.render(defaults)
        end = b"\r\n\r\n" if self.keep_alive else b"\r\n" + _CLOSE + b"\r\n"
        length = b"content-length: %d" % len(body)
        # Bytes are joined for less than they are formatted.
        self._transport.write(b"".join((STATUS_LINE[status], _rendered.block, headers, length, end, body)))
        self._finish()

    def start(self, status: int, headers: bytes) -> None:
        if self.disconnected or self.started:
            return
        self.started = True
        if self.http_1_0:
            framing = _CLOSE
        else:
            if self._protocol.plane.draining:
                self.keep_alive = False
            self._chunked = True
            framing = (
                b"transfer-encoding: chunked\r\n" if self.keep_alive else b"transfer-encoding: chunked\r\n" + _CLOSE
            )
        defaults = self._protocol.server_state.default_headers
        if defaults is not _rendered.defaults:
            _rendered.render(defaults)
        self._transport.write(b"%b%b%b%b\r\n" % (STATUS_LINE[status], _rendered.block, headers, framing))

    def write(self, data: bytes) -> None:
        if self.disconnected or self.response_complete:
            return
        self._transport.write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)

    def end(self) -> None:
        if self.disconnected or self.response_complete:
            return
        if self._chunked:
            self._transport.write(b"0\r\n\r\n")
        self._finish()

    def abort(self) -> None:
        if self.disconnected:
            return
        self.disconnected = True
        self._transport.flush()
        # A plain close would end a body without length, which HTTP/1.0 clients get, like a complete one.
        connection = self._transport.get_extra_info("socket")
        if connection is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        self._transport.abort()

    # What the protocol asks of it

    def begin(self) -> None:
        """Answer, now that the exchanges before this one are answered and the body is there."""
        if self.refusal is not None:
            self._refuse(self.refusal)
            return
        assert self._handler is not None
        loop = self._protocol.loop
        if sys.version_info >= (3, 12):
            task = asyncio.Task(self._handler(self), loop=loop, eager_start=True)
        else:
            task = loop.create_task(self._handler(self))
        self.task = task
        if task.done():
            self._ended(task)
        else:
            self._protocol.tasks.add(task)
            task.add_done_callback(self._ended)

    def send_continue(self) -> None:
        """Ask for the body, if the client waits to be asked."""
        if not self.continued:
            self.continued = True
            if not self.http_1_0 and any(name == b"expect" for name, _ in self.head.headers):
                self._transport.write(_CONTINUE)

    def leave(self) -> None:
        """The client is gone: stop the work on its answer, unless that is over and only being accounted for."""
        if self.disconnected or self.response_complete:
            return
        self.disconnected = True
        if self.task is not None:
            self.task.cancel(CLIENT_LEFT)

    def flow(self, paused: bool) -> None:
        """The transport's buffer is past its mark, or has drained."""
        self.paused = paused
        if self.on_flow is not None:
            self.on_flow(paused)

    def _finish(self) -> None:
        self.response_complete = True
        protocol = self._protocol
        if not self.keep_alive:
            protocol.close()
        protocol.on_response_complete()

    def _refuse(self, error: GatewayError) -> None:
        request_id = request_id_of(self.head.headers)
        self.keep_alive = False
        headers = error_headers(error, request_id)
        if self.head.method == "HEAD":
            self.http_1_0 = True  # says nothing of a length: there is no body, whatever one would be
            self.start(error.status, headers)
            self.end()
        else:
            self.respond(error.status, headers, error_body(error, request_id))

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._protocol.tasks.discard(task)
        self.on_flow = self.task = None
        error = None if task.cancelled() else task.exception()
        if error is not None:
            _log.error("the handler of %s %s failed", self.head.method, self.head.path, exc_info=error)
        if self.response_complete or self.disconnected:
            return
        if self.started:
            self.abort()
        else:
            draining = self._protocol.plane.draining
            self._refuse(
                DrainingError("The gateway is shutting down. Try again elsewhere, or in a moment.")
                if draining
                else GatewayError("The gateway failed to answer. Its log says why.")
            )
