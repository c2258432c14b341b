"""The connections to one origin: the idle ones, last used first, and a bound on all of them."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapters.errors import ProviderError
from adapters.types import FailureKind
from gateway.upstream.base import Origin
from gateway.upstream.connect import name_of
from gateway.upstream.whole_answer import AnswerReader

if TYPE_CHECKING:
    from gateway.upstream.connection import Connection

MAX_CONNECTIONS = 4096
WAIT_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class PoolStats:
    """Connections to one origin: ``open`` counts those being opened too, ``idle`` are kept for reuse."""

    open: int
    idle: int
    in_use: int

    def __add__(self, other: PoolStats) -> PoolStats:
        return PoolStats(self.open + other.open, self.idle + other.idle, self.in_use + other.in_use)


class OriginPool:
    """Knows every connection to its origin; connections register and leave by themselves."""

    __slots__ = (
        "_max_connections",
        "_waiters",
        "answers",
        "connections",
        "idle",
        "keep_alive",
        "name",
        "opening",
        "origin",
        "sweeps",
    )

    def __init__(self, origin: Origin, max_connections: int = MAX_CONNECTIONS) -> None:
        self.origin = origin
        self.name = name_of(origin)
        self.keep_alive = origin.keep_alive
        self.answers = AnswerReader()
        self.opening = 0
        """How many connections are being opened, kept up to date by whoever opens them."""
        self.connections: set[Connection] = set()
        # A dict is a stack that can also forget from its middle: popitem() gives the last one put in.
        self.idle: dict[Connection, None] = {}
        self.sweeps = 0
        self._max_connections = max_connections
        self._waiters: deque[asyncio.Future[None]] = deque()

    async def idle_or_place(self) -> Connection | None:
        """An idle connection, or None when a new one may be opened; NO_CAPACITY after two seconds without either."""
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + WAIT_SECONDS
        while not self.idle:
            if self.opening + len(self.connections) < self._max_connections:
                return None
            waiter: asyncio.Future[None] = loop.create_future()
            self._waiters.append(waiter)
            try:
                async with asyncio.timeout_at(give_up_at):
                    await waiter
            except TimeoutError:
                message = f"{self.name}: all {self._max_connections} connections are in use"
                raise ProviderError(FailureKind.NO_CAPACITY, message, sent=False) from None
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled():
                    self.wake_one()  # it was woken for nothing: pass it on
                raise
        return self.idle.popitem()[0]

    def release(self, connection: Connection) -> None:
        """Keep a connection for the next request."""
        connection.idle_since = self.sweeps
        self.idle[connection] = None
        if self._waiters:
            self.wake_one()

    def forget(self, connection: Connection) -> None:
        """A connection is lost."""
        self.connections.discard(connection)
        self.idle.pop(connection, None)
        if self._waiters:
            self.wake_one()

    def sweep(self, keep_sweeps: int) -> None:
        """Close the connections that have been idle for *keep_sweeps* sweeps."""
        self.sweeps += 1
        self.answers.try_again()
        oldest = self.sweeps - keep_sweeps
        for connection in [c for c in self.idle if c.idle_since < oldest]:
            connection.close()

    def is_unused(self) -> bool:
        return not (self.connections or self.opening or self._waiters)

    def stats(self) -> PoolStats:
        total, idle = self.opening + len(self.connections), len(self.idle)
        return PoolStats(open=total, idle=idle, in_use=total - idle)

    def wake_one(self) -> None:
        """Let the first of those who wait look again."""
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
