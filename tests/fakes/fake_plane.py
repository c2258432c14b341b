"""A data plane of small handlers, and both servers to put it behind."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Callable
from typing import Any

from gateway.data_plane.asgi_exchange import AsgiDataPlane
from gateway.data_plane.errors import render_headers
from gateway.data_plane.exchange import Exchange, Handler
from gateway.data_plane.limits import WireLimits
from gateway.data_plane.uvicorn_protocol import DataPlaneProtocol
from gateway.deadlines import Deadlines
from tests.fakes.loopback_server import Loopback, serving
from tests.fakes.raw_client import RawClient

IMPLEMENTATIONS = ("uvicorn", "asgi")


class FakePlane:
    """Routes to handlers, each behaving in one way; it records how they fared."""

    def __init__(self) -> None:
        self.draining = False
        self.cancelled: list[str] = []
        self.flow: list[bool] = []
        self.written = 0
        self.started: list[str] = []
        self.finished: list[str] = []
        self.tasks: set[asyncio.Task[Any]] = set()
        self.routes: dict[str, Handler] = {
            "/v1/echo": self.echo,
            "/v1/slow-echo": self.slow_echo,
            "/v1/stream": self.stream,
            "/v1/abort": self.abort,
            "/v1/fail": self.fail,
            "/v1/fail-late": self.fail_late,
            "/v1/forget": self.forget,
            "/v1/wait": self.wait,
            "/v1/endless": self.endless,
            "/v1/flood": self.flood,
            "/v1/settle-late": self.settle_late,
        }

    def match(self, method: bytes, path: str) -> Handler | None:
        handler = self.routes.get(path) if method == b"POST" else None
        return functools.partial(self._run, handler) if handler is not None else None

    async def _run(self, handler: Handler, exchange: Exchange) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        self.started.append(exchange.head.path)
        try:
            await handler(exchange)
        except asyncio.CancelledError as reason:
            self.cancelled.append(str(reason))
            raise
        finally:
            self.tasks.discard(task)
            self.finished.append(exchange.head.path)

    def cancel_all(self, reason: str) -> None:
        for task in self.tasks:
            task.cancel(reason)

    def forget_past(self) -> None:
        """Let what is recorded be about requests to come."""
        for record in (self.cancelled, self.started, self.finished):
            record.clear()

    async def began(self, path: str) -> None:
        await self.wait_for(lambda: path in self.started)

    async def ended(self, path: str) -> None:
        await self.wait_for(lambda: any(done.endswith(path) for done in self.finished))

    async def wait_for(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(5):
            while not condition():
                await asyncio.sleep(0.005)

    async def echo(self, exchange: Exchange) -> None:
        names = ",".join(name.decode() for name, _ in exchange.head.headers)
        pairs = [("x-peer", exchange.peer), ("x-names", names), ("x-path", exchange.head.path)]
        exchange.respond(200, render_headers(pairs), bytes(exchange.body))

    async def slow_echo(self, exchange: Exchange) -> None:
        await asyncio.sleep(0.01)
        await self.echo(exchange)

    async def stream(self, exchange: Exchange) -> None:
        exchange.start(200, b"content-type: text/event-stream\r\n")
        assert exchange.started
        for number in range(int(exchange.body)):
            exchange.write(b"data: %d\n\n" % number)
            await asyncio.sleep(0.01)
        exchange.end()

    async def abort(self, exchange: Exchange) -> None:
        exchange.start(200, b"")
        exchange.write(b"half")
        await asyncio.sleep(0.01)
        exchange.abort()
        await asyncio.sleep(0.05)

    async def fail(self, exchange: Exchange) -> None:
        raise LookupError("a bug")

    async def fail_late(self, exchange: Exchange) -> None:
        exchange.start(200, b"")
        exchange.write(b"half")
        await asyncio.sleep(0.01)
        raise LookupError("a bug")

    async def forget(self, exchange: Exchange) -> None:
        await asyncio.sleep(0)

    async def wait(self, exchange: Exchange) -> None:
        await asyncio.Event().wait()

    async def endless(self, exchange: Exchange) -> None:
        exchange.start(200, b"")
        while True:
            exchange.write(b"tick")
            await asyncio.sleep(0.02)

    async def flood(self, exchange: Exchange) -> None:
        writable = asyncio.Event()
        writable.set()

        def on_flow(paused: bool) -> None:
            assert exchange.paused is paused
            self.flow.append(paused)
            writable.clear() if paused else writable.set()

        exchange.on_flow = on_flow
        exchange.start(200, b"")
        for _ in range(int(exchange.body)):
            await writable.wait()
            exchange.write(bytes(65536))
            self.written += 1
            await asyncio.sleep(0)
        exchange.end()

    async def settle_late(self, exchange: Exchange) -> None:
        exchange.respond(200, b"", b"done")
        await asyncio.sleep(0.1)


async def cold_app(scope: Any, receive: Any, send: Any) -> None:
    """Everything else: echoes, and says what it saw."""
    assert scope["type"] == "http"
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body += message["body"]
        if not message["more_body"]:
            break
    if scope["path"] == "/cold/slow":
        await asyncio.sleep(0.01)
    names = b",".join(name for name, _ in scope["headers"])
    seen = b"%b %b %b %b" % (scope["method"].encode(), scope["path"].encode(), scope["query_string"], names)
    headers = [(b"x-cold", b"yes"), (b"x-seen", seen), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class Served:
    """A fake plane behind one of the servers."""

    def __init__(self, plane: FakePlane, loopback: Loopback, *, wire: bool) -> None:
        self.plane = plane
        self.loopback = loopback
        self.wire = wire
        self._clients: list[RawClient] = []

    async def connect(self, **options: Any) -> RawClient:
        client = await RawClient.connect(self.loopback.port, **options)
        self._clients.append(client)
        return client

    async def close_clients(self) -> None:
        for client in self._clients:
            await client.close()


@contextlib.asynccontextmanager
async def serve_plane(implementation: str, limits: WireLimits) -> AsyncIterator[Served]:
    """Put a fresh fake plane behind our own protocol (``uvicorn``) or behind stock uvicorn (``asgi``)."""
    plane = FakePlane()
    deadlines = Deadlines(tick_seconds=0.02)
    wire = implementation == "uvicorn"
    if wire:
        protocol = functools.partial(DataPlaneProtocol, plane=plane, limits=limits, deadlines=deadlines)
        server = serving(cold_app, http=protocol)
    else:
        server = serving(AsgiDataPlane(plane, cold_app, limits))
    async with server as loopback:
        served = Served(plane, loopback, wire=wire)
        try:
            yield served
        finally:
            await served.close_clients()
    deadlines.close()
