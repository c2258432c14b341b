"""Sessions of SQLAlchemy, for statements that are composed; loaded when the first of them is opened."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final

import aiosqlite
from sqlalchemy import URL, event
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from gateway.storage.errors import StorageError, StorageUnavailableError
from gateway.storage.failures import failures, in_words
from gateway.storage.operations import Operations
from gateway.storage.session import WRITE, Session
from gateway.storage.sqlite_file import set_up
from gateway.storage.statements import CONNECT_TIMEOUT_SECONDS, connection_options
from gateway.storage.urls import DatabaseUrl

_POOL_SIZE: Final = 4


class Sessions:
    """An engine, and the sessions on it."""

    def __init__(self, url: DatabaseUrl, patience_seconds: float, operations: Operations) -> None:
        make = _sqlite_engine if url.is_sqlite else _postgres_engine
        self.engine = make(url, patience_seconds)
        self._url = url
        self._operations = operations
        self._failures: tuple[type[Exception], ...] = (DBAPIError, PoolTimeoutError, *failures(url))

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Session]:
        """A session; what is not committed at its end is rolled back."""
        interrupt = None if self._url.is_sqlite else self._interrupt
        session = Session(self.engine, self._operations, self._failures, interrupt)
        try:
            await self._connect(session)
            yield session
        except IntegrityError:
            raise  # a broken rule is the caller's to explain
        except self._failures as error:
            raise _in_words(error, self._url) from error
        finally:
            await session.aclose()

    async def dispose(self) -> None:
        """Close the connections that are not in use."""
        await self.engine.dispose()

    async def _interrupt(self, connection: AsyncConnection) -> None:
        """Have PostgreSQL give up the statement of *connection*, which would go on to its time limit by itself."""
        import asyncpg

        raw = connection.sync_connection.connection if connection.sync_connection is not None else None
        driver: Any = raw.driver_connection if raw is not None else None
        if driver is None:
            return
        with suppress(*self._failures):
            other = await asyncpg.connect(**connection_options(self._url, CONNECT_TIMEOUT_SECONDS))
            try:
                await other.execute("SELECT pg_cancel_backend($1)", driver.get_server_pid())
            finally:
                await other.close()

    async def _connect(self, session: Session) -> None:
        try:
            await session.connect()
        except self._failures as error:
            raise _in_words(error, self._url) from error


def _in_words(error: Exception, url: DatabaseUrl) -> StorageError:
    """As `in_words` of the drivers, for what SQLAlchemy makes of their failures and for its own."""
    if isinstance(error, PoolTimeoutError):
        return StorageUnavailableError(f"{url} cannot be used right now: all connections are busy.")
    cause: BaseException = error
    while isinstance(cause, DBAPIError) and cause.orig is not None:
        cause = cause.orig
    return in_words(cause, url)


def _sqlite_engine(url: DatabaseUrl, patience_seconds: float) -> AsyncEngine:
    engine = create_async_engine(
        URL.create("sqlite+aiosqlite", database=str(url.sqlite_path)),
        async_creator=partial(_open, str(url.sqlite_path)),
        hide_parameters=True,
        pool_size=_POOL_SIZE,
        max_overflow=0,
        pool_timeout=CONNECT_TIMEOUT_SECONDS,
    )

    @event.listens_for(engine.sync_engine, "connect")
    def on_connect(connection: Any, _record: Any) -> None:
        set_up(connection, patience_seconds)

    @event.listens_for(engine.sync_engine, "begin")
    def begin(connection: Any) -> None:
        # A transaction that reads first and writes later fails at once when another one wrote in between;
        # one that will write therefore takes the write lock at its start and waits for it there.
        writes = connection.get_execution_options().get(WRITE, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


async def _open(path: str) -> aiosqlite.Connection:
    # Both as SQLAlchemy would have it. Of a connection that was never closed a thread is left, which must not keep the
    # process from ending.
    connection = aiosqlite.connect(path, check_same_thread=False)
    connection._thread.daemon = True
    return await connection


def _postgres_engine(url: DatabaseUrl, patience_seconds: float) -> AsyncEngine:
    import asyncpg

    async def connect(**_: object) -> Any:
        return await asyncpg.connect(**connection_options(url, patience_seconds))

    return create_async_engine(
        "postgresql+asyncpg://",
        async_creator=connect,
        hide_parameters=True,
        pool_size=_POOL_SIZE,
        max_overflow=_POOL_SIZE,
        pool_timeout=CONNECT_TIMEOUT_SECONDS,
        # A server that was restarted leaves dead connections in the pool; administration is rare enough to ask first.
        pool_pre_ping=True,
    )
