"""The database: a SQLite file or a PostgreSQL server, by two roads, and its failures in words."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from gateway.late import load
from gateway.storage.errors import StorageError
from gateway.storage.failures import failures, in_words
from gateway.storage.operations import Operations
from gateway.storage.session import WRITE, Session
from gateway.storage.sqlite_file import open_file, prepare_file
from gateway.storage.statements import PostgresStatements, Row, SqliteStatements, Statements
from gateway.storage.urls import DEFAULT_URL, DatabaseUrl, parse_database_url

if TYPE_CHECKING:
    from gateway.storage.engine import Sessions

_MIGRATION_SECONDS: Final = 3600.0
_CLOSE_SECONDS: Final = 10.0
_NOT_OPEN: Final = "The database is used before it is connected or after it is closed."


class Database:
    """Connections to the store. `connect` first, `aclose` last; everything raises `StorageError` when it fails.

    `fetch` runs SQL of ours and is all that serving requests needs. `read` and `begin` give a session for
    statements of SQLAlchemy Core, which is loaded with the first of them. All work on SQLite happens in threads of its
    own, so that no statement holds up the event loop. A task that is cancelled leaves at once; what it waited for ends
    by itself, and `aclose` waits for that.
    """

    def __init__(self, url: str | DatabaseUrl = DEFAULT_URL, *, patience_seconds: float = 10.0) -> None:
        """*patience_seconds* is how long a statement may take, waiting for locks included."""
        self.url = url if isinstance(url, DatabaseUrl) else parse_database_url(url)
        self._patience_seconds = patience_seconds
        self._statements: Statements | None = None
        self._sessions: Sessions | None = None
        self._operations = Operations()
        self._closing: asyncio.Task[None] | None = None
        self._failures = failures(self.url)

    @property
    def is_sqlite(self) -> bool:
        return self.url.is_sqlite

    async def connect(self) -> None:
        """Reach the database once; a SQLite file is created, readable by its owner alone, where there is none."""
        if self._statements is not None:
            return
        if self.is_sqlite:
            await asyncio.to_thread(prepare_file, self.url)
            self._statements = SqliteStatements(partial(open_file, self.url, self._patience_seconds))
        else:
            self._statements = PostgresStatements(self.url, self._patience_seconds)
        self._operations = Operations()
        try:
            await self.ping()
        except BaseException as error:
            await self.aclose()
            if isinstance(error, ValueError):
                # Half of what can be wrong with a PostgreSQL address; the message may quote it, password and all.
                message = f"{self.url} is no usable address. Correct storage.database_url."
                raise StorageError(message) from error
            raise

    async def ping(self) -> None:
        """Return when the database has answered."""
        await self.fetch("SELECT 1")

    async def fetch(self, statement: str, *values: Any) -> Sequence[Row]:
        """The rows that a statement of ours gives, written with ``$1``, ``$2`` … for *values*; it is a transaction."""
        try:
            # asyncpg has the server give up a statement; a thread of SQLite cannot be stopped.
            fetching = self._connected.fetch(statement, values)
            return await self._operations.run(fetching, cancellable=not self.is_sqlite)
        except self._failures as error:
            raise in_words(error, self.url) from error

    async def aclose(self) -> None:
        """Close all connections, after what is under way on them.

        May be called again, and then waits for sessions given up since, whose tasks had outlived the first call.
        """
        statements, self._statements = self._statements, None
        sessions, self._sessions = self._sessions, None
        if statements is not None or self._closing is None or self._closing.done():
            self._operations.closing = True
            self._closing = self._operations.start(self._close(statements, sessions, self._operations))
        closing = self._closing
        await asyncio.wait({closing})
        closing.result()

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Session]:
        """A session for queries; what is written over it is rolled back."""
        async with (await self._loaded()).open() as session:
            yield session

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[Session]:
        """A transaction that is committed at the end, or rolled back by an exception.

        It is whole or not at all for a caller who is cancelled while it is committed, as when the answer to a commit
        is lost; cancelled earlier, it is rolled back.
        """
        async with (await self._loaded()).open() as session:
            await session.begin(**{WRITE: True})
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
        if self._statements is None:
            raise StorageError(_NOT_OPEN)
        return open_file(self.url, self._patience_seconds)

    @property
    def _connected(self) -> Statements:
        if self._statements is None:
            raise StorageError(_NOT_OPEN)
        return self._statements

    async def _loaded(self) -> Sessions:
        opened = self._connected
        if self._sessions is None:
            engine = await load("gateway.storage.engine")
            # In a thread like the import, for it imports the dialect.
            made = await asyncio.to_thread(engine.Sessions, self.url, self._patience_seconds, self._operations)
            if self._statements is not opened:
                raise StorageError(_NOT_OPEN)
            # Who else has waited meanwhile may have been first. One that nobody uses has no connections to close.
            self._sessions = self._sessions or made
        return self._sessions

    async def _close(self, statements: Statements | None, sessions: Sessions | None, operations: Operations) -> None:
        # By then a statement has met its own limit. A migration has hardly any, but who interrupts it will not wait.
        await operations.finish(min(self._patience_seconds, _CLOSE_SECONDS) + 1.0)
        if sessions is not None:
            await sessions.dispose()
        if statements is not None:
            await statements.aclose()
