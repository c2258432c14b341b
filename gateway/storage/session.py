"""A connection as callers use it: SQLAlchemy's, with every operation shielded from the caller's cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from gateway.storage.errors import StorageError, StorageUnavailableError
from gateway.storage.operations import CUT_OFF, Operations

if TYPE_CHECKING:
    from sqlalchemy import Connection, CursorResult, Executable, ScalarResult
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

    _Rows: TypeAlias = CursorResult[*tuple[Any, ...]]

_Result = TypeVar("_Result")
_Parameters = Mapping[str, Any] | Sequence[Mapping[str, Any]]

Interrupt: TypeAlias = Callable[["AsyncConnection"], Coroutine[Any, Any, None]]
"""Has the server give up what it does for a connection."""

WRITE: Final = "gateway_write"
"""The option of a transaction that will write."""

_NOT_CONNECTED: Final = "The database is used outside of its session."
_LEFT: Final = "An operation of this session was given up while it ran, so that the session can only be ended."


class Session:
    """One connection from `connect` to `aclose`; for one task at a time.

    A caller that is cancelled leaves at once. The operation it waited for ends by itself, soon where the server can be
    told to give it up, and the connection is given back after it.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        operations: Operations,
        failures: tuple[type[Exception], ...],
        interrupt: Interrupt | None = None,
    ) -> None:
        """*failures* are those of the driver, which a connection may meet on its way back as well."""
        self._engine = engine
        self._operations = operations
        self._failures = failures
        self._interrupt = interrupt
        self._interrupting: asyncio.Task[None] | None = None
        self._connection: AsyncConnection | None = None
        self._latest: asyncio.Task[Any] | None = None
        self._left = False

    async def connect(self) -> None:
        """Take a connection from the engine."""
        await self._finish(self._connect())

    async def begin(self, **options: Any) -> None:
        """Begin a transaction; *options* are execution options of SQLAlchemy."""
        await self._finish(self._begin(options))

    async def commit(self) -> None:
        """Keep what was written. What is not committed at the end of the session is rolled back."""
        self._interrupt = None  # it is too late to say no
        await self._finish(self._connected.commit())

    async def execute(self, statement: Executable, parameters: _Parameters | None = None) -> _Rows:
        """The result of *statement*, its rows already fetched."""
        return await self._finish(self._connected.execute(statement, parameters))

    async def scalar(self, statement: Executable, parameters: Mapping[str, Any] | None = None) -> Any:
        """The first column of the first row, or None when there is no row."""
        return (await self.execute(statement, parameters)).scalar()

    async def scalars(self, statement: Executable, parameters: _Parameters | None = None) -> ScalarResult[Any]:
        """The first column of all rows."""
        return (await self.execute(statement, parameters)).scalars()

    async def exec_driver_sql(self, statement: str, parameters: Any = None) -> CursorResult[Any]:
        """The result of a statement in the driver's own words."""
        return await self._finish(self._connected.exec_driver_sql(statement, parameters))

    async def run_sync(self, work: Callable[[Connection], _Result]) -> _Result:
        """What *work* returns on SQLAlchemy's connection for code that awaits nothing."""
        return await self._finish(self._connected.run_sync(work))

    async def aclose(self) -> None:
        """Roll back what was not committed and give the connection back.

        Who was cancelled in the middle of an operation does not wait for it here either.
        """
        returning = self._operations.start(self._give_back())
        if not self._left:
            await asyncio.wait({returning})
            returning.result()

    @property
    def _connected(self) -> AsyncConnection:
        if self._connection is None:
            raise StorageError(_NOT_CONNECTED)
        return self._connection

    async def _finish(self, operation: Coroutine[Any, Any, _Result]) -> _Result:
        if self._left:
            # Somebody caught the cancellation, as a timeout does. What the operation did is anybody's guess, and a
            # transaction around it must not be committed.
            operation.close()
            raise StorageError(_LEFT)
        task = self._operations.start(operation)
        self._latest = task
        try:
            await asyncio.wait({task})
        except BaseException:
            self._left = True
            if self._interrupt is not None and self._connection is not None:
                self._interrupting = self._operations.start(self._interrupt(self._connection))
            raise
        if task.cancelled():  # by `Operations.finish`; it would look as if the caller were
            raise StorageUnavailableError(CUT_OFF)
        return task.result()

    async def _connect(self) -> None:
        self._connection = await self._engine.connect()

    async def _begin(self, options: Mapping[str, Any]) -> None:
        await self._connected.execution_options(**options)
        await self._connected.begin()

    async def _give_back(self) -> None:
        for task in (self._latest, self._interrupting):
            if task is not None:
                await asyncio.wait({task})
        if self._connection is None:
            return
        # A connection that breaks on its way back has served all the same; the pool drops it.
        with suppress(*self._failures):
            # Whoever had it next could meet an interruption that comes late.
            if self._operations.closing or self._interrupting is not None:
                await self._connection.invalidate()  # closes it: in the pool nobody would
            await self._connection.close()
