"""The database: one engine for a SQLite file or a PostgreSQL server, and its failures in words."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from typing import Any, Final

from sqlalchemy import event, text
from sqlalchemy.exc import DBAPIError, IntegrityError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from gateway.storage.errors import SchemaError, StorageError, StorageUnavailableError
from gateway.storage.urls import DEFAULT_URL, DatabaseUrl, parse_database_url

_CONNECT_TIMEOUT_SECONDS: Final = 5.0
_STATEMENT_TIMEOUT_SECONDS: Final = 10.0
_POOL_SIZE: Final = 4
_WRITE: Final = "gateway_write"


class Database:
    """Connections to the store. `connect` first, `aclose` last; everything raises `StorageError` when it fails.

    `read` and `begin` give a SQLAlchemy connection for statements of SQLAlchemy Core. All work on SQLite happens in
    threads of its own, so that no statement holds up the event loop.
    """

    def __init__(self, url: str = DEFAULT_URL) -> None:
        self.url: DatabaseUrl = parse_database_url(url)
        self._engine: AsyncEngine | None = None
        self._failures = _failures(self.url)

    @property
    def is_sqlite(self) -> bool:
        return self.url.is_sqlite

    @property
    def engine(self) -> AsyncEngine:
        """The engine, for those who need its dialect."""
        if self._engine is None:
            raise StorageError("The database is used before it is connected or after it is closed.")
        return self._engine

    async def connect(self) -> None:
        """Reach the database once; a SQLite file is created, readable by its owner alone, where there is none."""
        if self._engine is not None:
            return
        if self.is_sqlite:
            await asyncio.to_thread(_prepare_file, self.url)
            self._engine = _sqlite_engine(self.url)
        else:
            self._engine = _postgres_engine(self.url)
        try:
            await self.ping()
        except BaseException:
            await self.aclose()
            raise

    async def ping(self) -> None:
        """Return when the database has answered."""
        async with self.read() as connection:
            await connection.execute(text("SELECT 1"))

    async def aclose(self) -> None:
        """Close all connections. May be called again."""
        engine, self._engine = self._engine, None
        if engine is not None:
            await engine.dispose()

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        """A connection for queries; what is written over it is rolled back."""
        async with self._connection() as connection:
            yield connection

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[AsyncConnection]:
        """A transaction that is committed at the end, or rolled back by an exception."""
        async with self._connection() as connection:
            await connection.execution_options(**{_WRITE: True})
            async with connection.begin():
                yield connection

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[AsyncConnection]:
        try:
            connection = await self.engine.connect()
        except self._failures as error:
            raise _in_words(error, self.url) from error
        try:
            yield connection
        except IntegrityError:
            raise  # a broken rule is the caller's to explain
        except self._failures as error:
            raise _in_words(error, self.url) from error
        finally:
            # Cancelled in the middle of a statement, a connection must still find its way back to the pool.
            await asyncio.shield(connection.close())


def _prepare_file(url: DatabaseUrl) -> None:
    """Create the SQLite file where there is none, and set what is kept in the file itself."""
    path = url.sqlite_path
    assert path is not None
    try:
        # SQLite gives its -wal and -shm files the mode of the main file, so this one call protects all three.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise StorageError(
            f"Cannot open the database file {path}: {error.strerror}. "
            "Make its directory writable or set storage.database_url (GATEWAY_DATABASE_URL) to another place."
        ) from error
    # Changing the journal mode does not wait for locks as all else does, and workers start together.
    for patience_seconds in (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, None):
        try:
            with closing(sqlite3.connect(path, isolation_level=None)) as connection:
                connection.execute("PRAGMA journal_mode=WAL").fetchall()
            return
        except sqlite3.Error as error:
            if patience_seconds is None or "locked" not in str(error):
                raise _in_words(error, url) from error
            time.sleep(patience_seconds)


def _sqlite_engine(url: DatabaseUrl) -> AsyncEngine:
    engine = create_async_engine(
        f"sqlite+aiosqlite:///{url.sqlite_path}",
        pool_size=_POOL_SIZE,
        max_overflow=0,
        pool_timeout=_CONNECT_TIMEOUT_SECONDS,
    )

    @event.listens_for(engine.sync_engine, "connect")
    def set_up(connection: Any, _record: Any) -> None:
        # Python's sqlite3 would begin transactions by itself, but not before DDL and never as IMMEDIATE.
        connection.isolation_level = None
        cursor = connection.cursor()
        for pragma in ("busy_timeout=5000", "foreign_keys=ON", "synchronous=NORMAL"):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(engine.sync_engine, "begin")
    def begin(connection: Any) -> None:
        # A transaction that reads first and writes later fails at once when another one wrote in between;
        # one that will write therefore takes the write lock at its start and waits for it there.
        writes = connection.get_execution_options().get(_WRITE, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _postgres_engine(url: DatabaseUrl) -> AsyncEngine:
    import asyncpg  # type: ignore[import-untyped]  # it ships no types

    async def connect(**_: object) -> Any:
        return await asyncpg.connect(
            dsn=url.postgres_dsn,
            timeout=_CONNECT_TIMEOUT_SECONDS,
            command_timeout=_STATEMENT_TIMEOUT_SECONDS,
            server_settings={"application_name": "switchgear"},
        )

    return create_async_engine(
        "postgresql+asyncpg://",
        async_creator=connect,
        pool_size=_POOL_SIZE,
        max_overflow=_POOL_SIZE,
        pool_timeout=_CONNECT_TIMEOUT_SECONDS,
        # A server that was restarted leaves dead connections in the pool; look-ups are rare enough to ask first.
        pool_pre_ping=True,
    )


def _failures(url: DatabaseUrl) -> tuple[type[Exception], ...]:
    """What a statement can end with: SQLAlchemy's classes, and what drivers raise past them."""
    if url.is_sqlite:
        return (DBAPIError, PoolTimeoutError, sqlite3.Error, OSError)
    import asyncpg

    return (DBAPIError, PoolTimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError)


def _in_words(error: BaseException, url: DatabaseUrl) -> StorageError:
    cause = error
    while isinstance(cause, DBAPIError) and cause.orig is not None:
        cause = cause.orig
    said = str(cause).strip() or type(cause).__name__
    if url.is_sqlite:
        return _sqlite_in_words(said, url)
    names = {kind.__name__ for kind in type(cause).__mro__} | {type(cause.__cause__).__name__}
    if names & {"InvalidPasswordError", "InvalidAuthorizationSpecificationError"}:
        return StorageError(f"{url} refused the user name or password: {said}. Correct storage.database_url.")
    if "InvalidCatalogNameError" in names:
        return StorageError(f"{url} has no such database: {said}. Create it, or correct storage.database_url.")
    if "InsufficientPrivilegeError" in names:
        return StorageError(f"{url} does not permit this: {said}. Grant the right to the user.")
    if names & {"UndefinedTableError", "UndefinedColumnError"}:
        return SchemaError(f"{url} lacks something this version needs: {said}. Run `gateway db upgrade`.")
    if "DuplicateTableError" in names:
        return SchemaError(f"{url} holds tables that are not ours: {said}. Use a database of its own.")
    if isinstance(error, ProgrammingError):
        return StorageError(f"{url} refused a statement: {said}.")
    if isinstance(cause, PoolTimeoutError):
        said = "all connections are busy"
    if isinstance(cause, TimeoutError):
        said = "no answer in time"
    return StorageUnavailableError(f"{url} cannot be reached: {said}. Check that the server runs and the address.")


def _sqlite_in_words(said: str, url: DatabaseUrl) -> StorageError:
    if "not a database" in said or "malformed" in said:
        return StorageError(
            f"{url} is damaged or no SQLite database ({said}). Move it away or restore it from a backup."
        )
    if "readonly" in said:
        return StorageError(f"{url} is not writable ({said}). Correct its owner or mode.")
    if "no such table" in said or "no such column" in said:
        return SchemaError(f"{url} lacks something this version needs: {said}. Run `gateway db upgrade`.")
    if "already exists" in said:
        return SchemaError(f"{url} holds tables that are not ours: {said}. Use a database of its own.")
    return StorageUnavailableError(f"{url} cannot be used right now: {said}.")
