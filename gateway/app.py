"""Builds one worker: its services, the data plane in front, the FastAPI application for everything else."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from typing import Any
from urllib.parse import unquote, urlsplit

from gateway.bridge import owned
from gateway.catalog import Catalog
from gateway.data_plane.plane import DataPlane
from gateway.deadlines import Deadlines
from gateway.engines import SHARED_VARIABLE, attached_engines, owned_engines
from gateway.pipeline.authenticate import Authenticator
from gateway.pipeline.backends import Backends
from gateway.pipeline.holds import CountingLedger
from gateway.pipeline.settle import Settlements
from gateway.services import Services
from gateway.settings import Settings
from gateway.storage.database import Database
from gateway.storage.keys import open_key_store
from gateway.storage.requests import RequestLog
from gateway.storage.schema import prepare_schema
from gateway.telemetry.gauges import watch_parts
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.redact import register_secret
from gateway.telemetry.snapshots import Snapshots, publish_regularly
from gateway.upstream.base import Upstream
from gateway.upstream.fetch import Fetcher
from gateway.upstream.http1 import Http1Upstream
from local_engine.state import Engine


class Application:
    """One worker's parts, started and stopped in order. Build it with `create`, inside the event loop it runs on."""

    def __init__(self, services: Services, stack: AsyncExitStack) -> None:
        self.services = services
        self.plane = DataPlane(services)
        self._stack = stack
        self._asgi: Any = None

    @classmethod
    async def create(
        cls, settings: Settings, *, environ: Mapping[str, str] = os.environ, migrate: bool = False
    ) -> Application:
        """Connect the store, start the engines and everything that runs beside requests.

        Raises `StorageError`, `PolicyError` or `OSError` with what is wrong; nothing is left running then.
        """
        for secret in _secrets(settings):
            register_secret(secret)
        async with AsyncExitStack() as building:
            services = await _build(settings, environ, migrate, building)
            return cls(services, building.pop_all())
        raise AssertionError("unreachable")

    @property
    def asgi(self) -> Any:
        """The FastAPI application; it is imported and made when first asked for."""
        if self._asgi is None:
            from gateway.http.app import create_http_app

            self._asgi = create_http_app(self.services)
        return self._asgi

    def end_remaining(self) -> None:
        """End the requests that the drain could not wait for."""
        self.plane.end_remaining()

    async def aclose(self) -> None:
        """Write what is still to be written, stop the engines, close every connection."""
        await self._stack.aclose()


async def _build(settings: Settings, environ: Mapping[str, str], migrate: bool, stack: AsyncExitStack) -> Services:
    database = Database(settings.storage.database_url.get_secret_value())
    await database.connect()
    stack.push_async_callback(database.aclose)
    await prepare_schema(database, migrate=migrate)
    keys = await open_key_store(database, environ)

    authenticator = Authenticator(keys, mode=settings.auth.mode)
    authenticator.start()
    stack.push_async_callback(authenticator.aclose)
    requests = RequestLog(database)
    requests.start()
    stack.push_async_callback(requests.aclose)

    deadlines = Deadlines()
    stack.callback(deadlines.close)
    upstream = _client(settings, deadlines)
    stack.push_async_callback(upstream.aclose)
    fetcher = Fetcher(deadlines, private=settings.server.fetch_private_addresses)
    stack.push_async_callback(fetcher.aclose)
    engines = await _engines(settings, environ, stack)
    bridges = await _bridges(settings, environ, stack)
    catalog = Catalog.build(settings)
    metrics = Metrics(catalog.models, snapshots=Snapshots.from_environment())
    stack.callback(metrics.publish, last=True)
    stack.push_async_callback(_cancel, asyncio.create_task(publish_regularly(metrics.publish), name="metrics"))
    backends = Backends(owned.reached_by(settings, bridges), catalog, upstream, engines)
    watch_parts(metrics, catalog, backends)
    settlements = Settlements(metrics, requests)
    stack.callback(settlements.flush)
    return Services(
        settings=settings,
        catalog=catalog,
        database=database,
        keys=keys,
        authenticator=authenticator,
        requests=requests,
        metrics=metrics,
        backends=backends,
        ledger=CountingLedger(),
        settlements=settlements,
        fetcher=fetcher,
        deadlines=deadlines,
    )


async def _engines(settings: Settings, environ: Mapping[str, str], stack: AsyncExitStack) -> Mapping[str, Engine]:
    shared = environ.get(SHARED_VARIABLE)
    if shared:
        return attached_engines(shared)
    engines = owned_engines(settings)
    for engine in engines.values():
        await engine.start()
        stack.push_async_callback(engine.stop)
    return engines


async def _bridges(settings: Settings, environ: Mapping[str, str], stack: AsyncExitStack) -> Mapping[str, str]:
    """Where each bridge listens, by provider."""
    shared = environ.get(owned.SHARED_VARIABLE)
    if shared:
        return owned.shared_sockets(shared)
    bridges = owned.owned_bridges(settings)
    for bridge in bridges.values():
        await bridge.start()
        stack.push_async_callback(bridge.stop)
    return owned.sockets(bridges)


def _client(settings: Settings, deadlines: Deadlines) -> Upstream:
    if settings.server.upstream_client == "httpx":
        from gateway.upstream.httpx_client import HttpxUpstream

        return HttpxUpstream()
    return Http1Upstream(deadlines)


def _secrets(settings: Settings) -> list[str]:
    """Every secret of the configuration, so that none can reach a log."""
    found = [key for provider in settings.providers.values() for key in provider.keys]
    found += [
        value.get_secret_value() for provider in settings.providers.values() for value in provider.headers.values()
    ]
    for provider in settings.providers.values():
        found += owned.secrets_of(provider)
    password = urlsplit(settings.storage.database_url.get_secret_value()).password
    if password:
        found.append(unquote(password))
    if settings.auth.admin_key is not None:
        found.append(settings.auth.admin_key.get_secret_value())
    return found


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
