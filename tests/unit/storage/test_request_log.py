"""Rows of the request log: gathered, written in batches, kept while the database is away."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec import to_builtins
from msgspec.structs import asdict, replace
from sqlalchemy import select, text
from sqlalchemy.dialects import postgresql

from gateway.storage.database import Database
from gateway.storage.errors import StorageUnavailableError
from gateway.storage.postgres_rows import TYPES
from gateway.storage.request_row import COLUMNS, AttemptRow, Batch, RequestRow
from gateway.storage.requests import RequestLog
from gateway.storage.schema import prepare_schema
from gateway.storage.statements import Row
from gateway.storage.tables import requests

FULL = RequestRow(
    request_id="req-1",
    started_at_ms=1_796_030_000_000,
    key_id="key_1",
    organisation_id="org",
    team_id="team",
    user_id="user",
    endpoint="chat_completions",
    model="gpt-oss-120b",
    provider="groq",
    target="groq/openai/gpt-oss-120b",
    status=200,
    error_code=None,
    stream=True,
    prompt_tokens=10,
    completion_tokens=5,
    cached_tokens=3,
    reasoning_tokens=2,
    estimated=True,
    cost_nusd=9_000_000_000_000,
    ttft_ms=12.5,
    total_ms=480.25,
    overhead_ms=0.125,
    adjusted="logit_bias=dropped",
    client_ip="127.0.0.1",
    attempts=(
        AttemptRow("groq/a", "rate_limited", 429, 0.5, 20.0),
        AttemptRow("groq/b", None, 200, 21.0, 400.0, 10, 5, 3, 2, True, 42, "n=split"),
    ),
    tags=("blue", "zwölf"),
)


def _row(number: int) -> RequestRow:
    return replace(FULL, request_id=f"req-{number}", started_at_ms=FULL.started_at_ms + number)


async def _stored(database: Database) -> list[str]:
    async with database.read() as connection:
        return list((await connection.scalars(select(requests.c.request_id).order_by(requests.c.id))).all())


async def test_a_row_comes_back_as_it_was_given(database: Database) -> None:
    log = RequestLog(database)
    log.add(FULL)
    log.add(RequestRow("req-2", 1, None, None, None, None, "embeddings", None, None, None, 400, "invalid_json", False))
    await log.flush()

    async with database.read() as connection:
        rows = (await connection.execute(select(requests).order_by(requests.c.started_at_ms.desc()))).mappings().all()

    expected = asdict(FULL) | {"attempts": [to_builtins(a) for a in FULL.attempts], "tags": ["blue", "zwölf"]}
    assert {name: value for name, value in rows[0].items() if name != "id"} == expected
    assert (rows[1]["attempts"], rows[1]["tags"], rows[1]["cost_nusd"]) == ([], None, None)
    async with database.read() as connection:
        assert await connection.scalar(text("SELECT count(*) FROM requests WHERE tags IS NULL")) == 1


async def test_the_fields_of_a_row_are_the_columns() -> None:
    assert list(COLUMNS) == [column.name for column in requests.columns]


async def test_rows_go_to_postgresql_with_the_types_of_the_columns() -> None:
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]  # SQLAlchemy has no types for this one
    types = {column.name: column.type.compile(dialect=dialect).lower() for column in requests.columns}

    assert types == TYPES


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
        log.add(_row(number))
    await log.flush()

    assert len(commits) == 3
    assert await _stored(database) == [f"req-{number}" for number in range(250)]
    assert (log.written, log.pending, log.dropped) == (250, 0, 0)


async def test_the_background_task_writes_by_time_and_by_number(database: Database) -> None:
    async def until_written(log: RequestLog, count: int) -> None:
        async with asyncio.timeout(5):
            while log.written < count:
                await asyncio.sleep(0.01)

    slow = RequestLog(database, flush_every_seconds=3600, batch_rows=10)
    slow.start()
    for number in range(10):
        slow.add(_row(number))
    await until_written(slow, 10)
    await slow.aclose()

    quick = RequestLog(database, flush_every_seconds=0.05)
    quick.start()
    quick.add(_row(10))
    await until_written(quick, 1)
    await quick.aclose()

    assert len(await _stored(database)) == 11


async def test_closing_writes_what_is_left(database: Database) -> None:
    log = RequestLog(database, flush_every_seconds=3600)
    log.start()
    for number in range(30):
        log.add(_row(number))
    await log.aclose()

    assert len(await _stored(database)) == 30


async def test_a_full_log_lets_the_oldest_go_and_counts_them(database: Database) -> None:
    log = RequestLog(database, capacity=20, batch_rows=8)
    for number in range(50):
        log.add(_row(number))

    assert (log.pending, log.dropped) == (20, 30)
    await log.flush()
    assert await _stored(database) == [f"req-{number}" for number in range(30, 50)]


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
            log.add(_row(number))
        async with asyncio.timeout(10):
            while not caplog.records:
                await asyncio.sleep(0.02)
        assert (log.written, log.pending) == (0, 5)
        log.add(_row(5))
        with pytest.raises(StorageUnavailableError):
            await database.ping()
    finally:
        server.ensure_postgres_running()
    async with asyncio.timeout(10):
        while log.written < 6:
            await asyncio.sleep(0.02)
    await log.aclose()
    stored = await _stored(database)
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
        log.add(_row(number))
    await log.flush()
    log._retry = batches[0]  # as after a commit that was done but never answered
    await log.flush()
    assert len(batches) == 2

    assert await _stored(database) == ["req-0", "req-1", "req-2"]


@pytest.mark.parametrize(
    "bad",
    [
        {"prompt_tokens": 2**70},
        {"endpoint": None},
        {"total_ms": object()},
        {"error_code": "\ud800"},
        {"tags": [object()]},
        {"attempts": [AttemptRow("t", None, object(), 0.0, 0.0)]},  # type: ignore[arg-type]
    ],
)
async def test_a_row_that_cannot_be_stored_is_dropped_alone(
    database: Database, bad: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    log = RequestLog(database)
    for number in range(3):
        log.add(_row(number))
    log.add(replace(_row(3), **bad))
    log.add(_row(4))
    await log.flush()

    assert await _stored(database) == ["req-0", "req-1", "req-2", "req-4"]
    assert (log.written, log.dropped, log.pending) == (4, 1, 0)
    assert "cannot be stored" in caplog.text


async def test_a_zero_byte_that_postgresql_does_not_take_costs_no_other_row(database: Database) -> None:
    log = RequestLog(database)
    log.add(replace(_row(0), error_code="a\0b"))
    log.add(replace(_row(1), tags=["a\0b"]))
    log.add(_row(2))
    await log.flush()

    assert (await _stored(database))[-1] == "req-2"
    assert log.pending == 0


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
        log.add(_row(number))
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


async def test_rows_that_have_much_in_common_are_stored_as_alone(database: Database) -> None:
    kinds: list[dict[str, Any]] = [
        {},
        {"model": None, "provider": None, "target": None, "adjusted": None, "tags": ["a"]},
        {"client_ip": None, "stream": True, "cost_nusd": None, "ttft_ms": None, "error_code": "odd"},
        {"user_id": "another", "estimated": True, "cached_tokens": None},
    ]
    counts = [200, 17, 15, 1]
    rows = [
        replace(_row(1000 * number + kind), **{"tags": None, "prompt_tokens": number or None, **changes})
        for kind, (changes, count) in enumerate(zip(kinds, counts, strict=True))
        for number in range(count)
    ]
    log = RequestLog(database)
    log.add(*rows)
    await log.flush()

    async with database.read() as connection:
        found = (await connection.execute(select(requests))).mappings().all()
    stored = {row["request_id"]: {name: value for name, value in row.items() if name != "id"} for row in found}
    assert len({row["id"] for row in found}) == len(rows)
    for row in rows:
        expected = asdict(row) | {"attempts": [to_builtins(a) for a in row.attempts]}
        assert stored[row.request_id] == expected
