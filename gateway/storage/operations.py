"""Operations on a database that run to their end, whether or not their caller stays for it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from gateway.storage.errors import StorageUnavailableError

_Result = TypeVar("_Result")

CUT_OFF: Final = "The database was closed before it had answered."
_LAST_SECONDS: Final = 1.0
"""How long `finish` waits for what it had to cancel."""


class Operations:
    """What is under way on one engine, each operation a task that the cancellation of its caller does not reach.

    Cancelled in the middle of an operation, SQLAlchemy leaves the connection to a task that nobody awaits, or
    unclosed to the garbage collector.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self.closing = False
        """Whether the engine is closed, or about to be: it takes no connection back."""

    def start(self, operation: Coroutine[Any, Any, _Result]) -> asyncio.Task[_Result]:
        """Begin *operation*. Wait for the task with `asyncio.wait`, which leaves it alone when it is cancelled."""
        task = asyncio.create_task(operation)
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        return task

    async def run(self, operation: Coroutine[Any, Any, _Result], *, cancellable: bool = False) -> _Result:
        """The result of *operation*; when the caller is cancelled it ends by itself, soon where it is *cancellable*."""
        task = self.start(operation)
        try:
            await asyncio.wait({task})
        except BaseException:
            if cancellable:
                task.cancel()
            raise
        if task.cancelled():  # by `finish`; it would look as if the caller were
            raise StorageUnavailableError(CUT_OFF)
        return task.result()

    async def finish(self, seconds: float) -> None:
        """Return when all other operations have ended; those that have not after *seconds* are cancelled after all."""
        now = asyncio.get_running_loop().time
        until = now() + seconds
        while (others := self._tasks - {asyncio.current_task()}) and (left := until - now()) > 0:
            await asyncio.wait(others, timeout=left)
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others, timeout=_LAST_SECONDS)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # asyncio would report one that nobody asked for, and the caller may have left
