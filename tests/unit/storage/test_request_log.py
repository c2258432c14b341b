"""Rows of the request log: gathered, written in batches, kept while the database is away."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from gateway.storage.database import Database
from gateway.storage.errors import StorageUnavailableError
from gateway.storage.request_row import Batch
from gateway.storage.requests import RequestLog
from gateway.storage.schema import prepare_schema
from gateway.storage.statements import Row
from tests.unit.storage.request_rows import FULL, numbered, stored_ids


async def test_rows_are_written_in_few_transactions_and_in_order(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits: list[object] = []
    fetch, open_sqlite = database.fetch, database.open_sqlite

    async def noted(statement: str, *values: Any) -> Sequence[Row]:
        commits.append(statement)
        return await fetch(statement, *values)

    def traced() -> sqlite3.Connection:
        connection = open_sqlite()
        connection.set_trace_callback(lambda said: commits.append(said) if said == "COMMIT" else None)
        return connection

    monkeypatch.setattr(database, "fetch", noted)
    monkeypatch.setattr(database, "open_sqlite", traced)
    log = RequestLog(database, batch_rows=100)
    for number in range(250):
        log.add(numbered(number))
    await log.flush()

    assert len(commits) == 3
    assert await stored_ids(database) == [f"req-{number}" for number in range(250)]
    assert (log.written, log.pending, log.dropped) == (250, 0, 0)


async def test_the_background_task_writes_by_time_and_by_number(database: Database) -> None:
    async def until_written(log: RequestLog, count: int) -> None:
        async with asyncio.timeout(5):
            while log.written < count:
                await asyncio.sleep(0.01)

    slow = RequestLog(database, flush_every_seconds=3600, batch_rows=10)
    slow.start()
    for number in range(10):
        slow.add(numbered(number))
    await until_written(slow, 10)
    await slow.aclose()

    quick = RequestLog(database, flush_every_seconds=0.05)
    quick.start()
    quick.add(numbered(10))
    await until_written(quick, 1)
    await quick.aclose()

    assert len(await stored_ids(database)) == 11


async def test_closing_writes_what_is_left(database: Database) -> None:
    log = RequestLog(database, flush_every_seconds=3600)
    log.start()
    for number in range(30):
        log.add(numbered(number))
    await log.aclose()

    assert len(await stored_ids(database)) == 30


async def test_a_full_log_lets_the_oldest_go_and_counts_them(database: Database) -> None:
    log = RequestLog(database, capacity=20, batch_rows=8)
    for number in range(50):
        log.add(numbered(number))

    assert (log.pending, log.dropped) == (20, 30)
    await log.flush()
    assert await stored_ids(database) == [f"req-{number}" for number in range(30, 50)]


async def test_rows_wait_while_the_database_is_away_and_are_written_once_it_is_back(
    make_postgres: Callable[[], Any], caplog: pytest.LogCaptureFixture
) -> None:
    server = make_postgres()
    database = Database(server.get_uri())
    await database.connect()
    await prepare_schema(database, migrate=True)
    log = RequestLog(database, flush_every_seconds=0.05)
    log.start()
    server.stop()
    try:
        for number in range(5):
            log.add(numbered(number))
        async with asyncio.timeout(10):
            while not caplog.records:
                await asyncio.sleep(0.02)
        assert (log.written, log.pending) == (0, 5)
        log.add(numbered(5))
        with pytest.raises(StorageUnavailableError):
            await database.ping()
    finally:
        server.ensure_postgres_running()
    async with asyncio.timeout(10):
        while log.written < 6:
            await asyncio.sleep(0.02)
    await log.aclose()
    stored = await stored_ids(database)
    await database.aclose()

    assert stored == [f"req-{number}" for number in range(6)]
    warnings = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 2
    assert "cannot be written" in warnings[0]
    assert "again" in warnings[1]


async def test_a_batch_whose_commit_was_not_answered_is_not_written_twice(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = RequestLog(database)
    batches: list[Batch] = []
    insert = log._insert

    async def noted(batch: Batch) -> None:
        batches.append(batch)
        await insert(batch)

    monkeypatch.setattr(log, "_insert", noted)
    for number in range(3):
        log.add(numbered(number))
    await log.flush()
    log._retry = batches[0]  # as after a commit that was done but never answered
    await log.flush()
    assert len(batches) == 2

    assert await stored_ids(database) == ["req-0", "req-1", "req-2"]


async def test_closing_without_a_database_gives_up_in_time_and_says_how_much_is_lost(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    log = RequestLog(database)
    log.add(FULL)
    await database.aclose()

    await log.aclose(timeout_seconds=1)

    assert "1 request log rows could not be written" in caplog.text


async def test_writing_does_not_hold_up_the_event_loop(database: Database) -> None:
    log = RequestLog(database)
    for number in range(5000):
        log.add(numbered(number))
    longest = 0.0
    task = asyncio.create_task(log.flush())
    while not task.done():
        before = time.thread_time()
        await asyncio.sleep(0)
        longest = max(longest, time.thread_time() - before)
    await task

    assert log.written == 5000
    # In what a CPU works, since the clock on the wall tells how busy the machine is; all at once it would be far more.
    assert longest < 0.1
