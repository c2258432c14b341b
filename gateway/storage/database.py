"""The database: one engine for a SQLite file or a PostgreSQL server, and its failures in words."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import Any, Final

import aiosqlite
from sqlalchemy import URL, event, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from gateway.storage.errors import StorageError
from gateway.storage.failures import failures, in_words
from gateway.storage.operations import Operations
from gateway.storage.session import Session
from gateway.storage.urls import DEFAULT_URL, DatabaseUrl, parse_database_url

_CONNECT_TIMEOUT_SECONDS: Final = 5.0
_MIGRATION_SECONDS: Final = 3600.0
_CLOSE_SECONDS: Final = 10.0
_POOL_SIZE: Final = 4
_WRITE: Final = "gateway_write"
_NOT_OPEN: Final = "The database is used before it is connected or after it is closed."


class Database:
    """Connections to the store. `connect` first, `aclose` last; everything raises `StorageError` when it fails.

    `read` and `begin` give a session for statements of SQLAlchemy Core. All work on SQLite happens in threads of its
    own, so that no statement holds up the event loop. A task that is cancelled in a session leaves at once; what it
    waited for ends by itself, and `aclose` waits for that.
    """

    def __init__(self, url: str | DatabaseUrl = DEFAULT_URL, *, patience_seconds: float = 10.0) -> None:
        """*patience_seconds* is how long a statement may take, waiting for locks included."""
        self.url = url if isinstance(url, DatabaseUrl) else parse_database_url(url)
        self._patience_seconds = patience_seconds
        self._engine: AsyncEngine | None = None
        self._operations = Operations()
        self._closing: asyncio.Task[None] | None = None
        self._failures = failures(self.url)

    @property
    def is_sqlite(self) -> bool:
        return self.url.is_sqlite

    @property
    def engine(self) -> AsyncEngine:
        """The engine, for those who need its dialect."""
        if self._engine is None:
            raise StorageError(_NOT_OPEN)
        return self._engine

    async def connect(self) -> None:
        """Reach the database once; a SQLite file is created, readable by its owner alone, where there is none."""
        if self._engine is not None:
            return
        if self.is_sqlite:
            await asyncio.to_thread(_prepare_file, self.url)
            self._engine = _sqlite_engine(self.url, self._patience_seconds)
        else:
            self._engine = _postgres_engine(self.url, self._patience_seconds)
        self._operations = Operations()
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
        """Close all connections, after what is under way on them.

        May be called again, and then waits for sessions given up since, whose tasks had outlived the first call.
        """
        engine, self._engine = self._engine, None
        if engine is not None or self._closing is None or self._closing.done():
            self._operations.closing = True
            self._closing = self._operations.start(self._close(engine, self._operations))
        closing = self._closing
        await asyncio.wait({closing})
        closing.result()

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Session]:
        """A session for queries; what is written over it is rolled back."""
        async with self._session() as session:
            yield session

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[Session]:
        """A transaction that is committed at the end, or rolled back by an exception.

        It is whole or not at all for a caller who is cancelled while it is committed, as when the answer to a commit
        is lost; cancelled earlier, it is rolled back.
        """
        async with self._session() as session:
            await session.begin(**{_WRITE: True})
            yield session
            await session.commit()

    @asynccontextmanager
    async def begin_migration(self) -> AsyncIterator[Session]:
        """`begin` on a connection of its own, which waits as long as another process may take to migrate."""
        patient = Database(self.url, patience_seconds=_MIGRATION_SECONDS)
        await patient.connect()
        try:
            async with patient.begin() as session:
                yield session
        finally:
            await patient.aclose()

    def open_sqlite(self) -> sqlite3.Connection:
        """A plain connection to the SQLite file, for work that stays in one thread of its own."""
        if self._engine is None:
            raise StorageError(_NOT_OPEN)
        # By a URI because only that can forbid to create the file.
        uri = f"{Path(str(self.url.sqlite_path)).absolute().as_uri()}?mode=rw"
        connection = sqlite3.connect(uri, uri=True)
        _set_up(connection, self._patience_seconds)
        return connection

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[Session]:
        session = Session(self.engine, self._operations, self._failures)
        try:
            await self._connect(session)
            yield session
        except IntegrityError:
            raise  # a broken rule is the caller's to explain
        except self._failures as error:
            raise in_words(error, self.url) from error
        finally:
            await session.aclose()

    async def _connect(self, session: Session) -> None:
        try:
            await session.connect()
        except self._failures as error:
            raise in_words(error, self.url) from error
        except ValueError as error:
            # Half of what can be wrong with a PostgreSQL address; the message may quote it, password and all.
            raise StorageError(f"{self.url} is no usable address. Correct storage.database_url.") from error

    async def _close(self, engine: AsyncEngine | None, operations: Operations) -> None:
        # By then a statement has met its own limit. A migration has hardly any, but who interrupts it will not wait.
        await operations.finish(min(self._patience_seconds, _CLOSE_SECONDS) + 1.0)
        if engine is not None:
            await engine.dispose()


def _prepare_file(url: DatabaseUrl) -> None:
    """Create the SQLite file where there is none, and set what is kept in the file itself."""
    path = url.sqlite_path
    assert path is not None
    try:
        # SQLite gives its -wal and -shm files the mode of the main file, so this one call protects all three.
        # Only a new file may be opened so: closing an old one would drop the locks this process has on it.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        pass
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
                raise in_words(error, url) from error
            time.sleep(patience_seconds)


def _sqlite_engine(url: DatabaseUrl, patience_seconds: float) -> AsyncEngine:
    engine = create_async_engine(
        URL.create("sqlite+aiosqlite", database=str(url.sqlite_path)),
        async_creator=partial(_open, str(url.sqlite_path)),
        hide_parameters=True,
        pool_size=_POOL_SIZE,
        max_overflow=0,
        pool_timeout=_CONNECT_TIMEOUT_SECONDS,
    )

    @event.listens_for(engine.sync_engine, "connect")
    def set_up(connection: Any, _record: Any) -> None:
        _set_up(connection, patience_seconds)

    @event.listens_for(engine.sync_engine, "begin")
    def begin(connection: Any) -> None:
        # A transaction that reads first and writes later fails at once when another one wrote in between;
        # one that will write therefore takes the write lock at its start and waits for it there.
        writes = connection.get_execution_options().get(_WRITE, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


async def _open(path: str) -> aiosqlite.Connection:
    # Both as SQLAlchemy would have it. Of a connection that was never closed a thread is left, which must not keep the
    # process from ending.
    connection = aiosqlite.connect(path, check_same_thread=False)
    connection._thread.daemon = True
    return await connection


def _set_up(connection: Any, patience_seconds: float) -> None:
    # Python's sqlite3 would begin transactions by itself, but not before DDL and never as IMMEDIATE.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in (f"busy_timeout={patience_seconds * 1000:.0f}", "foreign_keys=ON", "synchronous=NORMAL"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _postgres_engine(url: DatabaseUrl, patience_seconds: float) -> AsyncEngine:
    import asyncpg

    async def connect(**_: object) -> Any:
        return await asyncpg.connect(
            dsn=url.postgres_dsn,
            timeout=_CONNECT_TIMEOUT_SECONDS,
            command_timeout=patience_seconds,
            server_settings={"application_name": "switchgear"},
        )

    return create_async_engine(
        "postgresql+asyncpg://",
        async_creator=connect,
        hide_parameters=True,
        pool_size=_POOL_SIZE,
        max_overflow=_POOL_SIZE,
        pool_timeout=_CONNECT_TIMEOUT_SECONDS,
        # A server that was restarted leaves dead connections in the pool; look-ups are rare enough to ask first.
        pool_pre_ping=True,
    )
