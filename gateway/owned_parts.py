"""The processes that a configuration asks for, local engines and bridges, kept across configurations that agree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from gateway.bridge import owned
from gateway.bridge.supervisor import Bridge
from gateway.config.provider_settings import ProviderSettings
from gateway.engines import SHARED_VARIABLE, attached_engines, owned_engines
from gateway.engines import share as share_engines
from gateway.settings import Settings
from local_engine.engine import LocalEngine
from local_engine.room import Room
from local_engine.state import Engine

Part: TypeAlias = LocalEngine | Bridge


@dataclass(frozen=True, slots=True)
class Reached:
    """How requests get to the parts: the engines, and where each bridge listens; both by provider."""

    engines: Mapping[str, Engine] = field(default_factory=dict)
    bridges: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Parts:
    """What one configuration needs."""

    engines: Mapping[str, LocalEngine] = field(default_factory=dict)
    bridges: Mapping[str, Bridge] = field(default_factory=dict)
    bridged: Mapping[str, ProviderSettings] = field(default_factory=dict)
    """What the bridges were made by."""
    max_loaded: int | None = None
    """How many of the engines may have their model in memory at a time."""

    @property
    def reached(self) -> Reached:
        return Reached(self.engines, owned.sockets(self.bridges))

    def each(self) -> Iterator[Part]:
        yield from self.engines.values()
        yield from self.bridges.values()


def share(parts: Parts) -> dict[str, str]:
    """The environment variables by which other processes find *parts*, which must have been started."""
    return {SHARED_VARIABLE: share_engines(parts.engines), owned.SHARED_VARIABLE: owned.share(parts.bridges)}


def shared_parts(variables: Mapping[str, str], before: Reached | None = None) -> Reached | None:
    """The parts that another process shares by `share`; None where it doesn't, and this process has its own.

    An engine that was reached *before* is the same object again, with whoever waits for it.
    """
    engines = variables.get(SHARED_VARIABLE)
    if engines is None:
        return None
    attached: dict[str, Engine] = {**attached_engines(engines)}
    for name, engine in (before.engines if before is not None else {}).items():
        if name in attached and (attached[name].address, attached[name].slots) == (engine.address, engine.slots):
            attached[name] = engine
    return Reached(attached, owned.shared_sockets(variables.get(owned.SHARED_VARIABLE, "{}")))


class OwnedParts:
    """The parts of the configuration in force, and of earlier ones for as long as requests still need them."""

    def __init__(self) -> None:
        self.current = Parts()
        self.room = Room()
        """Where local models are loaded: those of all configurations, for they share the machine's memory."""
        self._running: list[Part] = []

    async def prepare(self, settings: Settings) -> Parts:
        """What *settings* ask for: unchanged parts as they are, the others begun. Raises `BridgeError` or `OSError`."""
        parts = self._kept_or_made(settings)
        if not self._running:
            self.room.limit = parts.max_loaded  # later it counts when they are in force
        for part in parts.each():
            if part not in self._running:
                self._running.append(part)
                try:
                    await part.start()
                except BaseException:
                    await self.discard(parts)
                    raise
        return parts

    async def discard(self, parts: Parts) -> None:
        """Stop what was begun for *parts* alone, which are not going to be in force."""
        await self.stop(part for part in parts.each() if part not in [*self.current.each()])

    def adopt(self, parts: Parts) -> list[Part]:
        """*parts* are in force now; returns those that can be stopped when no earlier request is left."""
        before, self.current = self.current, parts
        self.room.limit = parts.max_loaded
        needed = [*parts.each()]
        return [part for part in before.each() if part not in needed]

    async def stop(self, parts: Iterable[Part]) -> None:
        """Stop those of *parts* that are running."""
        for part in list(parts):
            if part in self._running:
                self._running.remove(part)
                await part.stop()

    async def aclose(self) -> None:
        """Stop them all, the last begun first."""
        await self.stop(reversed(self._running))

    def _kept_or_made(self, settings: Settings) -> Parts:
        current = self.current
        engines = owned_engines(settings, self.room)
        for name, engine in engines.items():
            before = current.engines.get(name)
            if before is not None and before.config == engine.config:
                engines[name] = before
        bridges = owned.owned_bridges(settings)
        bridged = {name: settings.providers[name] for name in bridges}
        for name in bridges:
            if current.bridged.get(name) == bridged[name]:
                bridges[name] = current.bridges[name]
        return Parts(engines, bridges, bridged, settings.local_engine.max_loaded)
