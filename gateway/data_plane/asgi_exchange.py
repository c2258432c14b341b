"""The data plane as a plain ASGI application, for every server that is not ours."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from gateway.data_plane.errors import error_body, error_headers
from gateway.data_plane.exchange import ClientHead, Handler, Plane
from gateway.data_plane.limits import WireLimits
from gateway.data_plane.request_head import CLIENT_LEFT, check_head, too_large
from gateway.errors import DrainingError, GatewayError, RequestTimeoutError
from gateway.request_id import request_id_of

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_log = logging.getLogger(__name__)


class AsgiDataPlane:
    """Answers the routes of *plane* by its handlers, and hands everything else to *fallback_app*.

    Sizes and slow bodies are limited as on our own server; what concerns the wire is up to the server in use.
    """

    def __init__(self, plane: Plane, fallback_app: App, limits: WireLimits) -> None:
        self._plane = plane
        self._fallback_app = fallback_app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        handler = None
        if scope["type"] == "http":
            handler = self._plane.match(scope["method"].encode("ascii"), scope["path"])
        if handler is None:
            await self._fallback_app(scope, receive, send)
            return
        exchange = AsgiExchange(scope, self._plane, self._limits)
        error = check_head(exchange.head.headers, self._limits)
        if error is None:
            try:
                exchange.body = await self._read_body(receive)
            except GatewayError as refusal:
                error = refusal
            except _ClientLeftError:
                return
        if error is not None:
            exchange.refuse(error)
            await exchange.pump(send)
            return
        await _run(exchange, handler, receive, send)

    async def _read_body(self, receive: Receive) -> bytes | bytearray:
        limits = self._limits
        body = bytearray()
        loop = asyncio.get_running_loop()
        mark = limits.progress_bytes
        try:
            async with asyncio.timeout(limits.body_seconds) as timeout:
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise _ClientLeftError
                    chunk = message.get("body", b"")
                    if not body and not message.get("more_body", False):
                        body = chunk
                    else:
                        body += chunk
                    if len(body) > limits.max_body_bytes:
                        raise too_large(limits)
                    if not message.get("more_body", False):
                        return body
                    if len(body) >= mark:
                        mark = len(body) + limits.progress_bytes
                        timeout.reschedule(loop.time() + limits.body_seconds)
        except TimeoutError:
            raise RequestTimeoutError(
                "The body of the request took too long to arrive. Send it faster.", headers={"connection": "close"}
            ) from None


class _ClientLeftError(Exception):
    """The connection ended before the body did."""


async def _run(exchange: AsgiExchange, handler: Handler, receive: Receive, send: Send) -> None:
    loop = asyncio.get_running_loop()
    task = loop.create_task(handler(exchange))
    task.add_done_callback(exchange.handler_ended)
    watcher = loop.create_task(_watch_client(receive, exchange, task))
    try:
        if await exchange.pump(send):
            # The answer is out, but the handler may still be accounting for it.
            await asyncio.wait({task})
    finally:
        watcher.cancel()
        if not task.done():
            exchange.disconnected = True
            task.cancel(CLIENT_LEFT)
        await asyncio.wait({task, watcher})


async def _watch_client(receive: Receive, exchange: AsgiExchange, task: asyncio.Task[None]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    if not exchange.ended:
        exchange.leave()
        task.cancel(CLIENT_LEFT)


class AsgiExchange:
    """An `Exchange` whose answer is queued, and sent by the coroutine the server awaits."""

    def __init__(self, scope: Scope, plane: Plane, limits: WireLimits) -> None:
        headers = [(name.lower(), value) for name, value in scope["headers"]]
        self.head = ClientHead(scope["method"], scope["path"], headers)
        self.body: bytes | bytearray = b""
        client = scope.get("client")
        self.peer: str = client[0] if client else ""
        self.task: asyncio.Task[None] | None = None
        self.started = False
        self.paused = False
        self.on_flow: Callable[[bool], None] | None = None

        self.disconnected = False
        self.ended = False
        self._plane = plane
        self._limits = limits
        self._outbox: deque[Message] = deque()
        self._waiting_bytes = 0
        self._news = asyncio.Event()

    def respond(self, status: int, headers: bytes, body: bytes) -> None:
        if self.disconnected or self.started:
            return
        self._put_head(status, [*_pairs(headers), (b"content-length", str(len(body)).encode())])
        self._put_body(body, more=False)

    def start(self, status: int, headers: bytes) -> None:
        if not self.disconnected and not self.started:
            self._put_head(status, _pairs(headers))

    def write(self, data: bytes) -> None:
        if not self.disconnected and not self.ended:
            self._put_body(data, more=True)

    def end(self) -> None:
        if not self.disconnected and not self.ended:
            self._put_body(b"", more=False)

    def abort(self) -> None:
        # ASGI has no word for it. A server that sees its application return in the middle of a body breaks off, too.
        self.leave()

    def refuse(self, error: GatewayError) -> None:
        request_id = request_id_of(self.head.headers)
        self.respond(error.status, error_headers(error, request_id), error_body(error, request_id))

    def leave(self) -> None:
        """Nobody reads on: drop what waits, and let `pump` return."""
        self.disconnected = True
        self._outbox.clear()
        self._news.set()

    def handler_ended(self, task: asyncio.Task[None]) -> None:
        """Answer for a handler that did not."""
        self.on_flow = None
        error = None if task.cancelled() else task.exception()
        if error is not None:
            _log.error("the handler of %s %s failed", self.head.method, self.head.path, exc_info=error)
        if self.ended or self.disconnected:
            return
        if self.started:
            self.abort()
        elif self._plane.draining:
            self.refuse(DrainingError("The gateway is shutting down. Try again elsewhere, or in a moment."))
        else:
            self.refuse(GatewayError("The gateway failed to answer. Its log says why."))

    async def pump(self, send: Send) -> bool:
        """Send what is queued until the answer ends or the client leaves; False if it takes nothing for too long."""
        while True:
            while self._outbox:
                message = self._outbox.popleft()
                try:
                    async with asyncio.timeout(self._limits.write_stall_seconds):
                        await send(message)
                except TimeoutError:
                    self.leave()
                    return False
                self._took(len(message.get("body", b"")))
            if self.ended or self.disconnected:
                return True
            self._news.clear()
            await self._news.wait()

    def _put_head(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self.started = True
        if self._plane.draining:
            headers.append((b"connection", b"close"))
        self._outbox.append({"type": "http.response.start", "status": status, "headers": headers})
        self._news.set()

    def _put_body(self, data: bytes, *, more: bool) -> None:
        self.ended = not more
        self._outbox.append({"type": "http.response.body", "body": data, "more_body": more})
        self._news.set()
        self._waiting_bytes += len(data)
        if not self.paused and self._waiting_bytes > self._limits.buffer_bytes:
            self._set_paused(True)

    def _took(self, size: int) -> None:
        self._waiting_bytes -= size
        if self.paused and self._waiting_bytes <= self._limits.buffer_bytes // 4:
            self._set_paused(False)

    def _set_paused(self, paused: bool) -> None:
        self.paused = paused
        if self.on_flow is not None:
            self.on_flow(paused)


def _pairs(block: bytes) -> list[tuple[bytes, bytes]]:
    lines = block.split(b"\r\n")[:-1]
    return [(name, value) for name, _, value in (line.partition(b": ") for line in lines)]
