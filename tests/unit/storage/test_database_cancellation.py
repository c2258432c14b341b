"""Tasks that are cancelled while they use the database: nothing is half written, lost, or left behind."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, insert, select, text

from gateway.storage.database import Database
from gateway.storage.errors import StorageError
from gateway.storage.operations import Operations
from gateway.storage.tables import settings

_CONNECTIONS = 4
_Work = Callable[[], Coroutine[Any, Any, None]]

pytestmark = pytest.mark.parametrize("cancels", [1, 2])


@asynccontextmanager
async def _nothing_left_behind() -> AsyncIterator[None]:
    """Fails for tasks that go on, and for what asyncio and the garbage collector complain of after the block."""
    complaints: list[object] = []
    loop, hook = asyncio.get_running_loop(), sys.unraisablehook
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    sys.unraisablehook = lambda unraisable: complaints.append(str(unraisable.exc_value))
    before = asyncio.all_tasks()
    try:
        yield
        tasks = asyncio.all_tasks() - before
        gc.collect()
        await asyncio.sleep(0)
    finally:
        sys.unraisablehook = hook
        loop.set_exception_handler(None)
    assert tasks == set()
    assert complaints == []


def _moments() -> Iterator[int]:
    """Numbers of turns of the event loop, the first ones all and then ever fewer."""
    turns = 0
    while True:
        yield turns
        turns += 1 + turns // 16


async def _cancelled(work: Coroutine[Any, Any, None], turns: int, cancels: int) -> bool:
    """Whether *work* was cancelled after that many turns; False when it had ended before."""
    task = asyncio.create_task(work)
    for _ in range(turns):
        await asyncio.sleep(0)
    for _ in range(cancels):
        task.cancel()
        await asyncio.sleep(0)
    await asyncio.wait({task})
    return task.cancelled()


async def _cancel_everywhere(work: _Work, cancels: int) -> None:
    for turns in _moments():
        if not await _cancelled(work(), turns, cancels):
            return


async def _use_whole_pool(database: Database) -> None:
    together = asyncio.Barrier(_CONNECTIONS)

    async def use() -> None:
        async with database.read() as session:
            await session.execute(select(func.count()).select_from(settings))
            await together.wait()

    async with asyncio.timeout(10):
        await asyncio.gather(*(use() for _ in range(_CONNECTIONS)))


async def _close(database: Database) -> None:
    async with asyncio.timeout(10):
        await database.aclose()


async def test_a_cancelled_connect_leaves_nothing(database_url: str, cancels: int) -> None:
    async with _nothing_left_behind():
        for turns in _moments():
            database = Database(database_url)
            cancelled = await _cancelled(database.connect(), turns, cancels)
            await _close(database)
            if not cancelled:
                break


async def test_cancelled_queries_leave_nothing_and_keep_no_connection(database_url: str, cancels: int) -> None:
    async with _nothing_left_behind():
        database = Database(database_url)
        await database.connect()

        async def query() -> None:
            async with database.read() as session:
                await session.execute(select(settings))
                await session.scalar(text("SELECT 1"))

        await _cancel_everywhere(query, cancels)
        await _use_whole_pool(database)
        await _close(database)


async def test_queries_cancelled_together_leave_nothing(database_url: str, cancels: int) -> None:
    """Connections are being opened, waited for and given back at once."""
    async with _nothing_left_behind():
        for turns in _moments():
            database = Database(database_url)
            await database.connect()
            uses = [_cancelled(database.ping(), turns, cancels) for _ in range(2 * _CONNECTIONS)]
            cancelled = await asyncio.gather(*uses)
            await _close(database)
            if not any(cancelled):
                break


async def test_cancelled_transactions_write_nothing(database: Database, database_url: str, cancels: int) -> None:
    unfinished, finished = [], []
    async with _nothing_left_behind():
        other = Database(database_url)
        await other.connect()
        reached = -1

        async def write(turns: int) -> None:
            nonlocal reached
            async with other.begin() as session:
                for half in ("a", "b"):
                    await session.execute(insert(settings).values(name=f"{turns}{half}", value=""))
                reached = turns

        for turns in _moments():
            cancelled = await _cancelled(write(turns), turns, cancels)
            if not cancelled:
                finished.append(turns)
                break
            # Cancelled later, it was in the middle of its commit, which may be done all the same.
            if reached != turns:
                unfinished.append(turns)
        await _use_whole_pool(other)
        await _close(other)

    async with database.read() as session:
        names = set((await session.scalars(select(settings.c.name))).all())
    assert len(unfinished) > 5
    assert not {f"{turns}{half}" for turns in unfinished for half in "ab"} & names
    assert {f"{turns}{half}" for turns in finished for half in "ab"} <= names
    assert {name[:-1] for name in names if name.endswith("a")} == {name[:-1] for name in names if name.endswith("b")}


async def test_a_failure_that_nobody_waits_for_is_not_reported(database_url: str, cancels: int) -> None:
    async with _nothing_left_behind():
        database = Database(database_url)
        await database.connect()

        async def fail() -> None:
            with suppress(StorageError):
                async with database.read() as session:
                    await session.execute(text("SELECT nothing FROM nowhere"))

        await _cancel_everywhere(fail, cancels)
        await _use_whole_pool(database)
        await _close(database)


async def test_a_cancelled_writer_leaves_at_once_and_closing_waits_for_its_statement(
    tmp_path: Path, cancels: int
) -> None:
    path = tmp_path / "gateway.db"
    async with _nothing_left_behind():
        database = Database(f"sqlite:///{path}")
        await database.connect()
        with closing(sqlite3.connect(path, isolation_level=None)) as blocker:
            blocker.execute("BEGIN IMMEDIATE")

            async def write() -> None:
                async with database.begin() as session:
                    await session.execute(text("CREATE TABLE written (x)"))

            writer = asyncio.create_task(write())
            await asyncio.wait({writer}, timeout=0.05)
            for _ in range(cancels):
                writer.cancel()
                await asyncio.sleep(0)
            await asyncio.wait({writer}, timeout=1)
            assert writer.cancelled()

            closings = [asyncio.create_task(database.aclose()) for _ in range(2)]
            # Who gives up closing does not stop it, and a second one waits for the first.
            closings[0].cancel()
            await asyncio.wait({closings[1]}, timeout=0.05)
            assert closings[0].cancelled()
            assert not closings[1].done()
            blocker.execute("ROLLBACK")
            await asyncio.wait({closings[1]}, timeout=5)
            assert closings[1].done()
            assert blocker.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)


async def test_a_session_that_outlives_the_database_closes_its_connection(database_url: str, cancels: int) -> None:
    async with _nothing_left_behind():
        database = Database(database_url)
        await database.connect()
        inside, go_on = asyncio.Event(), asyncio.Event()

        async def linger() -> None:
            async with database.read() as session:
                inside.set()
                await go_on.wait()
                await session.execute(text("SELECT 1"))

        tasks = [asyncio.create_task(linger()) for _ in range(2)]
        await inside.wait()
        await asyncio.sleep(0.05)
        await _close(database)
        go_on.set()
        await tasks[0]
        for _ in range(cancels):
            tasks[1].cancel()
            await asyncio.sleep(0)
        await asyncio.wait({tasks[1]})
        await _close(database)


async def test_a_transaction_whose_statement_was_given_up_is_not_committed(database: Database, cancels: int) -> None:
    async def write() -> None:
        async with database.begin() as session:
            await session.execute(insert(settings).values(name="before", value=""))
            statement = asyncio.create_task(session.execute(insert(settings).values(name="given up", value="")))
            await asyncio.sleep(0)
            for _ in range(cancels):
                statement.cancel()
            await asyncio.wait({statement})
            assert statement.cancelled()

    with pytest.raises(StorageError, match="given up"):
        await write()

    async with database.read() as session:
        assert (await session.scalars(select(settings.c.name))).all() == []


async def test_operations_that_do_not_end_in_time_are_cancelled_when_all_is_closed(cancels: int) -> None:
    async with _nothing_left_behind():
        operations = Operations()
        endless = [operations.start(asyncio.Event().wait()) for _ in range(cancels)]

        await operations.finish(0.01)

        assert all(task.cancelled() for task in endless)
