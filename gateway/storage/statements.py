"""SQL in words of ours, straight to the driver: the few statements by which a serving process lives.

Looking up keys, following their changes, the request log, the versions of schema and pepper. They are written once for
both databases, with ``$1``, ``$2`` … for values. What administration asks is composed with SQLAlchemy instead, in
`engine.py`, which a serving process loads only then.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Protocol, TypeVar

from gateway.storage.urls import DatabaseUrl

Row = Sequence[Any]

CONNECT_TIMEOUT_SECONDS: Final = 5.0
_POOL_SIZE: Final = 4
_CLOSE_SECONDS: Final = 1.0

_Result = TypeVar("_Result")


class Statements(Protocol):
    """A database as its driver shows it. Everything raises what the driver raises; each statement is a transaction."""

    async def fetch(self, statement: str, values: Row) -> Sequence[Row]:
        """The rows that *statement* gives for *values*."""

    async def aclose(self) -> None:
        """Close the connections, after what is under way on them."""


class SqliteStatements:
    """One connection in a thread of its own, so that no statement holds up the event loop."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="database")
        self._connection: sqlite3.Connection | None = None

    async def fetch(self, statement: str, values: Row) -> Sequence[Row]:
        # SQLite numbers its values by ?1; nothing else in a statement of ours has a dollar sign.
        return await self._in_thread(lambda: self._connected().execute(statement.replace("$", "?"), values).fetchall())

    async def aclose(self) -> None:
        await self._in_thread(self._disconnect)
        self._thread.shutdown(wait=False)

    async def _in_thread(self, work: Callable[[], _Result]) -> _Result:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


class PostgresStatements:
    """A pool of asyncpg. Connections are made when they are needed; one that the server has closed is replaced."""

    def __init__(self, url: DatabaseUrl, patience_seconds: float) -> None:
        self._url = url
        self._patience_seconds = patience_seconds
        self._pool: Any = None
        self._making = asyncio.Lock()

    async def fetch(self, statement: str, values: Row) -> Sequence[Row]:
        pool = await self._made()
        async with pool.acquire(timeout=CONNECT_TIMEOUT_SECONDS) as connection:
            rows: Sequence[Row] = await connection.fetch(statement, *values)
            return rows

    async def aclose(self) -> None:
        pool, self._pool = self._pool, None
        if pool is None:
            return
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await pool.close()
        except TimeoutError:
            pool.terminate()

    async def _made(self) -> Any:
        async with self._making:
            if self._pool is None:
                import asyncpg

                self._pool = await asyncpg.create_pool(
                    **connection_options(self._url, self._patience_seconds), min_size=0, max_size=_POOL_SIZE
                )
        return self._pool


def connection_options(url: DatabaseUrl, patience_seconds: float) -> dict[str, Any]:
    """What every connection to PostgreSQL is made with, those of SQLAlchemy as well."""
    return {
        "dsn": url.postgres_dsn,
        "timeout": CONNECT_TIMEOUT_SECONDS,
        "command_timeout": patience_seconds,
        "server_settings": {"application_name": "switchgear"},
    }
