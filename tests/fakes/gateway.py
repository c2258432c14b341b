"""A whole gateway on a loopback port, in the test's own event loop, with its insides at hand."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import select

from gateway.app import Application
from gateway.data_plane.asgi_exchange import AsgiDataPlane
from gateway.data_plane.limits import WireLimits
from gateway.data_plane.uvicorn_protocol import DataPlaneProtocol
from gateway.deadlines import Deadlines, Watch
from gateway.reload.source import Source
from gateway.services import Services
from gateway.storage.tables import requests
from gateway.upstream.http1 import Http1Upstream
from gateway.upstream.pool import PoolStats
from tests.fakes.databases import MEMORY, migrated_sqlite
from tests.fakes.loopback_server import Loopback, serving
from tests.fakes.raw_client import Answer, RawClient, post
from tests.fakes.scripted_server import ScriptedServer

SERVERS = ("uvicorn", "asgi")
CLIENTS = ("own", "httpx")
KEY = "gw-test-key-0123456789abcdef"
PROVIDER_KEY = "sk-provider-secret-0123456789"
CHAT = "/v1/chat/completions"
HELLO = {"role": "user", "content": "Say hello."}


def provider(server: ScriptedServer | int, **settings: Any) -> dict[str, Any]:
    """The settings of a provider at a scripted server, or at a port."""
    port = server if isinstance(server, int) else server.port
    address = f"http://127.0.0.1:{port}/v1"
    return {"type": "openai_compatible", "base_url": address, "api_key": PROVIDER_KEY, **settings}


def config(*servers: ScriptedServer | int, **model: Any) -> dict[str, Any]:
    """One model ``m`` with a target at each of *servers*, in their order: ``p1/up1``, ``p2/up2``, ...

    *model* are further settings of the model.
    """
    numbers = range(1, len(servers) + 1)
    targets = [
        {"provider": f"p{number}", "model": f"up{number}", "price": {"input": 1, "output": 2}} for number in numbers
    ]
    return {
        "version": 1,
        "providers": {f"p{number}": provider(server) for number, server in zip(numbers, servers, strict=True)},
        "models": {"m": {"targets": targets, **model}},
    }


class RunningGateway:
    """The gateway, how to reach it, and what it has done."""

    def __init__(self, app: Application, loopback: Loopback, wire: bool, file: Path) -> None:
        self.app = app
        self.loopback = loopback
        self.wire = wire
        """Served by our own protocol, not by plain ASGI."""
        self.file = file
        """The configuration file, which a test may rewrite."""
        self._clients: list[RawClient] = []

    @property
    def port(self) -> int:
        return self.loopback.port

    @property
    def services(self) -> Services:
        return self.app.services

    @property
    def upstream(self) -> PoolStats:
        """The connections of our own HTTP client to all upstreams."""
        model = next(iter(self.services.catalog.models.values()))
        client = self.services.backends.route(model).backends[0].upstream
        assert isinstance(client, Http1Upstream)
        return sum(client.stats().values(), PoolStats(0, 0, 0))

    async def connect(self, **options: Any) -> RawClient:
        client = await RawClient.connect(self.port, **options)
        self._clients.append(client)
        return client

    async def post(
        self, path: str, body: Mapping[str, Any] | bytes, *headers: str, key: str | None = KEY, timeout: float = 10.0
    ) -> Answer:
        """One request on a connection of its own, and its answer."""
        client = await self.connect()
        await client.send(request(path, body, *headers, key=key))
        answer = await client.answer(timeout)
        await client.close()
        return answer

    async def chat(self, *headers: str, key: str | None = KEY, timeout: float = 10.0, **body: Any) -> Answer:
        """One chat request to the model ``m``; *body* adds to it or replaces."""
        return await self.post(CHAT, chat_body(**body), *headers, key=key, timeout=timeout)

    async def rows(self) -> list[dict[str, Any]]:
        """The rows of the request log, in the order the requests ended."""
        await self.quiet()
        self.services.settlements.flush()
        await self.services.requests.flush()
        async with self.services.database.read() as connection:
            found = (await connection.execute(select(requests).order_by(requests.c.id))).mappings().all()
        return sorted((dict(row) for row in found), key=lambda row: row["started_at_ms"])

    async def row(self) -> dict[str, Any]:
        """The only row."""
        rows = await self.rows()
        assert len(rows) == 1, rows
        return rows[0]

    async def quiet(self, seconds: float = 5.0) -> None:
        """Return once no request is under way."""
        await self.wait_for(lambda: not self.services.in_flight, seconds)
        await asyncio.sleep(0)  # the record of a request is made right after it has left

    async def wait_for(self, condition: Callable[[], bool], seconds: float = 5.0) -> None:
        async with asyncio.timeout(seconds):
            while not condition():
                await asyncio.sleep(0.003)

    def metric(self, name: str, **labels: str) -> float:
        """The sum of the series called *name* that carry *labels*."""
        total = 0.0
        self.services.settlements.flush()
        for line in self.services.metrics.render().decode().splitlines():
            series, _, value = line.rpartition(" ")
            told = series.partition("{")[2]
            if series.partition("{")[0] == name and all(f'{key}="{text}"' in told for key, text in labels.items()):
                total += float(value)
        return total

    def request_watches(self) -> list[Watch]:
        """The watches of requests: all but the HTTP client's own, which looks after idle connections."""
        return [
            watch
            for watch in self.services.deadlines._watches
            if not isinstance(getattr(watch.on_expire, "__self__", None), Http1Upstream)
        ]

    async def close_clients(self) -> None:
        for client in self._clients:
            await client.close()


def request(path: str, body: Mapping[str, Any] | bytes, *headers: str, key: str | None = KEY) -> bytes:
    """A request as it goes over the wire; *key* None leaves the authorization out."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    auth = () if key is None else (f"Authorization: Bearer {key}",)
    return post(path, raw, "Content-Type: application/json", *auth, *headers)


def chat_body(**body: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [HELLO], **body}


@contextlib.asynccontextmanager
async def running_gateway(
    settings: Mapping[str, Any],
    *,
    server: str = "uvicorn",
    upstream_client: str = "own",
    environ: Mapping[str, str] | None = None,
    limits: WireLimits | None = None,
    models: Sequence[str] | None = None,
    watch: bool = False,
) -> AsyncIterator[RunningGateway]:
    """Serve *settings*, a configuration file's content, by our own protocol (``uvicorn``) or by plain ASGI (``asgi``).

    With *watch* it follows changes of the file. `KEY` is a key that works, for *models* alone if given, unless
    ``auth: {mode: open}`` stands in the settings.
    """
    limits = limits or WireLimits()
    with tempfile.TemporaryDirectory(dir=MEMORY, ignore_cleanup_errors=True) as folder:
        path = Path(folder, "config.yaml")
        path.write_text(json.dumps({"version": 1, **settings}))  # JSON is YAML
        Path(folder, "gateway.db").write_bytes(await migrated_sqlite())
        flags = {
            "storage.database_url": f"sqlite+aiosqlite:///{folder}/gateway.db",
            "server.upstream_client": upstream_client,
        }
        source = Source(path, environ or {}, flags)
        loaded = source.load()
        app = await Application.create(loaded, environ=environ or {}, migrate=True, source=source, watch=watch)
        # Short limits in tests want a timer that looks more often.
        app.services.deadlines._tick_seconds = 0.01
        try:
            if loaded.auth.mode == "keys":
                await app.services.keys.create("test", secret=KEY, models=models)
            async with _serve(app, server, limits) as loopback:
                running = RunningGateway(app, loopback, wire=server == "uvicorn", file=path)
                try:
                    yield running
                finally:
                    await running.close_clients()
        finally:
            await app.aclose()


@contextlib.asynccontextmanager
async def _serve(app: Application, server: str, limits: WireLimits) -> AsyncIterator[Loopback]:
    async def fallback(scope: Any, receive: Any, send: Any) -> None:
        await app.asgi(scope, receive, send)

    # The server's watches are kept apart, so that those of requests can be counted.
    deadlines = Deadlines(tick_seconds=0.02)
    if server == "uvicorn":
        protocol = functools.partial(DataPlaneProtocol, plane=app.plane, limits=limits, deadlines=deadlines)
        listening = serving(fallback, protocol)
    else:
        listening = serving(AsgiDataPlane(app.plane, fallback, limits))
    async with listening as loopback:
        yield loopback
    deadlines.close()
