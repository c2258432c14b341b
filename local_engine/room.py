"""How many models may be loaded at a time, and which one gives way to the next."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Final, Protocol

PATIENCE_SECONDS: Final = 10.0
"""How long a model waits for others to have nothing to do, before the one that was used least recently takes no new
requests, so that it can be unloaded when those it has are answered."""

_LOOK_AGAIN_SECONDS: Final = 0.1


class Tenant(Protocol):
    """A model that may be loaded."""

    @property
    def last_used(self) -> float: ...

    @property
    def ready_since(self) -> float:
        """When it was loaded last, on the clock of its room."""

    def give_way(self, *, though_busy: bool) -> bool:
        """Unload, at once or, though busy, after the requests it has; False when it does not."""


class Room:
    """The places of loaded models; *limit* None: as many as there are."""

    def __init__(
        self,
        limit: int | None = None,
        patience_seconds: float = PATIENCE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limit = limit
        """May be changed at any time; those who are too many by a lower one leave as soon as nobody uses them."""
        self._patience_seconds = patience_seconds
        self._clock = clock
        self._inside: list[Tenant] = []
        self._one_at_a_time = asyncio.Lock()
        self._left = asyncio.Event()

    @property
    def has_place(self) -> bool:
        return self.limit is None or len(self._inside) < self.limit

    def enter_if_free(self, tenant: Tenant) -> bool:
        """Give *tenant* a place, if there is one without moving anybody. Being inside already counts as having one."""
        if tenant in self._inside:
            return True
        if not self.has_place:
            return False
        self._inside.append(tenant)
        return True

    async def enter(self, tenant: Tenant) -> None:
        """Return when *tenant* has a place; those who wait get theirs in the order they came."""
        if tenant in self._inside:
            return  # those who wait in line may be waiting for this very one to go on
        async with self._one_at_a_time:
            began = self._clock()
            while not self.enter_if_free(tenant):
                self._left.clear()
                self._make_room(began)
                # What other processes do is not told here, so that one has to look again.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_AGAIN_SECONDS):
                        await self._left.wait()

    def leave(self, tenant: Tenant) -> None:
        """*tenant* is not loaded any more."""
        if tenant in self._inside:
            self._inside.remove(tenant)
            self._left.set()

    def too_many(self, tenant: Tenant) -> bool:
        """Whether *tenant* is one of those that a lower limit has no place for."""
        if self.limit is None or len(self._inside) <= self.limit:
            return False
        return tenant in self._by_last_use()[: len(self._inside) - self.limit]

    def _make_room(self, waiting_since: float) -> None:
        tenants = self._by_last_use()
        if any(tenant.give_way(though_busy=False) for tenant in tenants):
            return
        now = self._clock()
        for tenant in tenants:
            # Loading takes time as well: whoever has just been loaded is left to those it was loaded for, or two
            # models could take turns for ever without an answer.
            patient_since = max(waiting_since, tenant.ready_since)
            if now - patient_since >= self._patience_seconds and tenant.give_way(though_busy=True):
                return

    def _by_last_use(self) -> list[Tenant]:
        return sorted(self._inside, key=lambda tenant: tenant.last_used)
