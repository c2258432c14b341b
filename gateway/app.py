"""Builds one worker: its services, the data plane in front, and what answers everything else."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from pathlib import Path

from gateway.config.secrets import secrets_of
from gateway.data_plane.plane import DataPlane
from gateway.deadlines import Deadlines
from gateway.http.front import Front
from gateway.owned_parts import OwnedParts, shared_parts
from gateway.pipeline.authenticate import Authenticator
from gateway.pipeline.holds import CountingLedger
from gateway.pipeline.settle import Settlements
from gateway.reload.installation import Installation, LocalInstaller, build
from gateway.reload.reloader import Reloader, Reloads
from gateway.reload.source import Source
from gateway.services import Services
from gateway.settings import Settings
from gateway.storage.database import Database
from gateway.storage.keys import open_key_store
from gateway.storage.requests import RequestLog
from gateway.storage.schema import prepare_schema
from gateway.telemetry import names
from gateway.telemetry.gauges import watch_parts
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.redact import register_secret
from gateway.telemetry.snapshots import Snapshots, publish_regularly
from gateway.upstream.base import Upstream
from gateway.upstream.fetch import Fetcher
from gateway.upstream.http1 import Http1Upstream


class Application:
    """One worker's parts, started and stopped in order. Build it with `create`, inside the event loop it runs on."""

    def __init__(self, services: Services, installation: Installation, stack: AsyncExitStack) -> None:
        self.services = services
        self.installation = installation
        self.plane = DataPlane(services)
        self.asgi = Front(services)
        """Everything on the port that the data plane does not answer."""
        self._stack = stack

    @classmethod
    async def create(
        cls,
        settings: Settings,
        *,
        environ: Mapping[str, str] = os.environ,
        migrate: bool = False,
        source: Source | None = None,
        watch: bool = False,
        parent: Reloads | None = None,
    ) -> Application:
        """Connect the store, start the engines and everything that runs beside requests.

        *source* is where *settings* came from and come from again at a reload; with *watch* one follows every change
        of it. *parent* does the reloading where there are several workers.

        Raises `StorageError`, `PolicyError` or `OSError` with what is wrong; nothing is left running then.
        """
        for secret in secrets_of(settings):
            register_secret(secret)
        async with AsyncExitStack() as building:
            parts = OwnedParts()
            building.push_async_callback(parts.aclose)
            services, installation = await _build(settings, environ, migrate, parts, building)
            if parent is not None:
                services.reloads = parent
            else:
                if source is None:
                    source = Source(Path(settings.source) if settings.source else None, environ)
                services.reloads = reloader = Reloader(source, LocalInstaller(services, installation, parts))
                building.push_async_callback(reloader.aclose)
                if watch:
                    reloader.start_watching()
            return cls(services, installation, building.pop_all())
        raise AssertionError("unreachable")

    def reload_soon(self, trigger: str) -> None:
        """Read the configuration again, without waiting for it."""
        self.services.reloads.reload_soon(trigger)

    def end_remaining(self) -> None:
        """End the requests that the drain could not wait for."""
        self.plane.end_remaining()

    async def aclose(self) -> None:
        """Write what is still to be written, stop the engines, close every connection."""
        await self._stack.aclose()


async def _build(
    settings: Settings, environ: Mapping[str, str], migrate: bool, parts: OwnedParts, stack: AsyncExitStack
) -> tuple[Services, Installation]:
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
    reached = shared_parts(environ)
    if reached is None:
        begun = await parts.prepare(settings)
        parts.adopt(begun)
        reached = begun.reached
    configuration = build(settings, reached, upstream)
    metrics = Metrics(configuration.catalog.models, snapshots=Snapshots.from_environment())
    stack.callback(metrics.publish, last=True)
    stack.push_async_callback(_cancel, asyncio.create_task(publish_regularly(metrics.publish), name="metrics"))
    settlements = Settlements(metrics, requests)
    stack.callback(settlements.flush)
    services = Services(
        current=configuration,
        database=database,
        keys=keys,
        authenticator=authenticator,
        requests=requests,
        metrics=metrics,
        ledger=CountingLedger(),
        settlements=settlements,
        fetcher=fetcher,
        deadlines=deadlines,
    )
    watch_parts(metrics, lambda: services.current, calls=services.in_flight)
    metrics.watch(names.CONFIG_RELOAD_OK, lambda: [((), float(services.reloads.last.ok))])
    installation = Installation(services, upstream, reached)
    stack.push_async_callback(installation.aclose)
    return services, installation


def _client(settings: Settings, deadlines: Deadlines) -> Upstream:
    if settings.server.upstream_client == "httpx":
        from gateway.upstream.httpx_client import HttpxUpstream

        proxy = settings.server.upstream_proxy
        return HttpxUpstream(proxy=proxy.get_secret_value() if proxy is not None else None, http2=True)
    return Http1Upstream(deadlines)


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
