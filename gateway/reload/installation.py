"""Puts a configuration in force in one process: built beside the old one, then one assignment."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from typing import Final

from gateway.bridge import owned
from gateway.catalog import Catalog
from gateway.config.secrets import secrets_of
from gateway.owned_parts import OwnedParts, Parts, Reached
from gateway.pipeline.backends import Backends
from gateway.reload.outcome import Outcome
from gateway.services import Configuration, Services
from gateway.settings import Settings
from gateway.telemetry.redact import register_secret
from gateway.upstream.base import Upstream

_LOOK_AGAIN_SECONDS: Final = 0.1


def build(settings: Settings, reached: Reached, upstream: Upstream, before: Backends | None = None) -> Configuration:
    """All that follows from *settings*. What is the same as *before* is taken over: connections, limits, turns of keys.

    Changes nothing that is in force. Raises `PolicyError` or `OSError`.
    """
    for secret in secrets_of(settings):
        register_secret(secret)
    catalog = Catalog.build(settings)
    backends = Backends(owned.reached_by(settings, reached.bridges), catalog, upstream, reached.engines, before)
    return Configuration(settings, catalog, backends, reached.bridges)


class Installation:
    """The configurations of one process: that in force, and those before it that requests under way still have."""

    def __init__(self, services: Services, upstream: Upstream, reached: Reached) -> None:
        """*reached* are the parts of the configuration in force."""
        self.reached = reached
        self._services = services
        self._upstream = upstream
        self._retiring: set[asyncio.Task[None]] = set()

    async def build(self, settings: Settings, reached: Reached) -> Configuration:
        """As `build`, in a thread: requests do not wait for it."""
        before = self._services.current.backends
        return await asyncio.to_thread(build, settings, reached, self._upstream, before)

    def swap(self, configuration: Configuration, reached: Reached, when_over: Callable[[], Awaitable[None]]) -> None:
        """Put *configuration*, which uses what is *reached*, in force.

        *when_over* is called when the last request that has another one has ended.
        """
        services = self._services
        self.reached = reached
        services.current = configuration
        configuration.backends.take_effect()
        services.authenticator.set_mode(configuration.settings.auth.mode)
        # What is over has been counted by then, so that nothing brings its targets back.
        services.settlements.flush()
        services.metrics.reconfigured(configuration.catalog.models)
        task = asyncio.create_task(self._retire(when_over), name="retiring a configuration")
        self._retiring.add(task)
        task.add_done_callback(self._retiring.discard)

    async def aclose(self) -> None:
        """Wait for nothing any more: the requests are over, or will be ended."""
        for task in self._retiring:
            task.cancel()
        if self._retiring:
            await asyncio.wait(self._retiring)

    async def _retire(self, when_over: Callable[[], Awaitable[None]]) -> None:
        # Admitted in the same turn of the loop in which they read the configuration, so none is missed.
        earlier = set(self._services.in_flight)
        while earlier:
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)
            earlier &= self._services.in_flight
        await when_over()
        del earlier
        # What the old configuration consisted of refers to itself in circles, some 65 objects a target, and the server
        # has told the collector to come by so seldom that hundreds of them would pile up. Takes 20 ms for 200 targets.
        gc.collect()


class LocalInstaller:
    """Implements `Installer` for a gateway of one process, which owns its engines and bridges itself."""

    def __init__(self, services: Services, installation: Installation, parts: OwnedParts) -> None:
        self._services = services
        self._installation = installation
        self._parts = parts
        self._prepared: tuple[Configuration, Parts] | None = None

    @property
    def settings(self) -> Settings:
        return self._services.settings

    async def prepare(self, settings: Settings) -> None:
        parts = await self._parts.prepare(settings)
        try:
            self._prepared = await self._installation.build(settings, parts.reached), parts
        except BaseException:
            await self._parts.discard(parts)
            raise

    async def commit(self) -> None:
        assert self._prepared is not None
        (configuration, parts), self._prepared = self._prepared, None
        unneeded = self._parts.adopt(parts)
        self._installation.swap(configuration, parts.reached, lambda: self._parts.stop(unneeded))

    def tell(self, outcome: Outcome) -> None:
        """The reloader keeps it."""
