"""The gateway's HTTP client: HTTP/1.1 over kept-alive connections, with little between the socket and the caller."""

from __future__ import annotations

import asyncio

from adapters.errors import ProviderError
from adapters.types import FailureKind
from gateway.deadlines import NEVER, Deadlines, Watch
from gateway.upstream.base import Origin, RequestHead, Sending
from gateway.upstream.connect import connect
from gateway.upstream.connection import Connection, StaleConnectionError
from gateway.upstream.pool import MAX_CONNECTIONS, OriginPool, PoolStats
from gateway.upstream.resolve import Resolver
from gateway.upstream.response import Http1Response
from gateway.upstream.whole_answer import WholeAnswer

SWEEP_SECONDS = 5.0
KEEP_IDLE_SECONDS = 30.0
CLOSE_SECONDS = 1.0


class Http1Upstream:
    """Implements `Upstream` for one event loop.

    A plain answer that fits one read costs one wake-up of the calling task: the future of the head is resolved
    while the parser runs, and by the time the task goes on, the body has been parsed too.
    """

    def __init__(
        self,
        deadlines: Deadlines,
        *,
        max_connections_per_origin: int = MAX_CONNECTIONS,
        keep_idle_seconds: float = KEEP_IDLE_SECONDS,
        resolver: Resolver | None = None,
    ) -> None:
        self._deadlines = deadlines
        self._max_connections = max_connections_per_origin
        self._sweep_seconds = min(SWEEP_SECONDS, keep_idle_seconds)
        self._keep_sweeps = max(1, round(keep_idle_seconds / self._sweep_seconds))
        self._resolver = resolver or Resolver()
        self._pools: dict[Origin, OriginPool] = {}
        self._watch = Watch(NEVER, self._sweep)
        self._watching = False
        self._closed = False

    async def send(
        self, head: RequestHead, body: bytes, extra_headers: bytes = b"", sending: Sending | None = None
    ) -> Http1Response | WholeAnswer:
        start = (head.wire, b"%d\r\n" % len(body), extra_headers, b"\r\n")
        pool = self._pools.get(head.origin) or self._new_pool(head.origin)
        connection = pool.idle.popitem()[0] if pool.idle else await self._open_or_wait(pool)
        if sending is not None:
            sending.sent = True
        while True:
            waiter = connection.request(start, body)
            try:
                return await waiter
            except StaleConnectionError:
                # The server closed the kept-alive connection while our request was on its way, without answering.
                # Such a request may be sent once more: a fresh connection cannot be stale, so this ends here.
                connection = await self._open(pool)
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                    waiter.result().close()
                else:
                    connection.abort()
                raise
            finally:
                # A future that holds an error holds this frame: without the name there is no cycle to collect.
                del waiter

    def stats(self) -> dict[str, PoolStats]:
        """Connections by origin, for metrics."""
        stats: dict[str, PoolStats] = {}
        for origin, pool in self._pools.items():
            name = str(origin)
            stats[name] = stats[name] + pool.stats() if name in stats else pool.stats()
        return stats

    async def aclose(self) -> None:
        self._closed = True
        self._resolver.close()
        self._deadlines.discard(self._watch)
        for pool in self._pools.values():
            for connection in list(pool.connections):
                connection.abort()
        # Transports report their end in the next turn of the loop, those with TLS a few turns later.
        give_up_at = asyncio.get_running_loop().time() + CLOSE_SECONDS
        while any(pool.connections for pool in self._pools.values()):
            if asyncio.get_running_loop().time() > give_up_at:
                break
            await asyncio.sleep(0.001)

    async def _open_or_wait(self, pool: OriginPool) -> Connection:
        idle = await pool.idle_or_place()
        return idle if idle is not None else await self._open(pool)

    async def _open(self, pool: OriginPool) -> Connection:
        loop = asyncio.get_running_loop()
        self._refuse_when_closed(pool)
        if not self._watching:
            self._watching = True
            self._watch.deadline = loop.time() + self._sweep_seconds
            self._deadlines.add(self._watch)
        pool.opening += 1
        made: list[Connection] = []

        def make() -> Connection:
            made.append(Connection(pool, loop))
            return made[-1]

        try:
            connection = await connect(pool.origin, self._resolver, make)
        except BaseException:
            # uvloop may have told a connection that it is open, and never tells it that it was closed again.
            for unfinished in made:
                unfinished.forsake()
            raise
        finally:
            pool.opening -= 1
        if self._closed:
            connection.abort()
        self._refuse_when_closed(pool)
        if connection.lost:
            raise ProviderError(FailureKind.CONNECT, f"{pool.name}: the connection closed at once", sent=False)
        return connection

    def _refuse_when_closed(self, pool: OriginPool) -> None:
        if self._closed:
            raise ProviderError(FailureKind.CONNECT, f"{pool.name}: the client has been closed", sent=False)

    def _new_pool(self, origin: Origin) -> OriginPool:
        pool = self._pools[origin] = OriginPool(origin, self._max_connections)
        return pool

    def _sweep(self) -> None:
        for origin, pool in list(self._pools.items()):
            pool.sweep(self._keep_sweeps)
            if pool.is_unused():
                del self._pools[origin]
        if self._pools:
            self._watch.deadline = asyncio.get_running_loop().time() + self._sweep_seconds
        else:
            # The timer rests while there is nothing to look after.
            self._watching = False
            self._deadlines.discard(self._watch)
