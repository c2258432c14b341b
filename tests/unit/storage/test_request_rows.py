"""A row of the request log is stored with all it says, and one that cannot be is dropped alone."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import to_builtins
from msgspec.structs import asdict, replace
from sqlalchemy import select, text
from sqlalchemy.dialects import postgresql

from gateway.storage.database import Database
from gateway.storage.postgres_rows import TYPES
from gateway.storage.request_row import COLUMNS, AttemptRow, RequestRow
from gateway.storage.requests import RequestLog
from gateway.storage.tables import requests
from tests.unit.storage.request_rows import FULL, numbered, stored_ids


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


@pytest.mark.parametrize(
    "bad",
    [
        {"prompt_tokens": 2**70},
        {"endpoint": None},
        {"estimated": None},
        {"total_ms": object()},
        {"error_code": "\ud800"},
        {"tags": [object()]},
        {"attempts": [AttemptRow("t", None, object(), 0.0, 0.0)]},  # type: ignore[arg-type]  # no kind at all
    ],
)
async def test_a_row_that_cannot_be_stored_is_dropped_alone(
    database: Database, bad: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    log = RequestLog(database)
    for number in range(3):
        log.add(numbered(number))
    log.add(replace(numbered(3), **bad))
    log.add(numbered(4))
    await log.flush()

    assert await stored_ids(database) == ["req-0", "req-1", "req-2", "req-4"]
    assert (log.written, log.dropped, log.pending) == (4, 1, 0)
    assert "cannot be stored" in caplog.text


async def test_a_zero_byte_that_postgresql_does_not_take_costs_no_other_row(database: Database) -> None:
    log = RequestLog(database)
    log.add(replace(numbered(0), error_code="a\0b"))
    log.add(replace(numbered(1), tags=["a\0b"]))
    log.add(numbered(2))
    await log.flush()

    assert (await stored_ids(database))[-1] == "req-2"
    assert log.pending == 0


async def test_rows_that_have_much_in_common_are_stored_as_alone(database: Database) -> None:
    kinds: list[dict[str, Any]] = [
        {},
        {"model": None, "provider": None, "target": None, "adjusted": None, "tags": ["a"]},
        {"client_ip": None, "stream": True, "cost_nusd": None, "ttft_ms": None, "error_code": "odd"},
        {"user_id": "another", "estimated": True, "cached_tokens": None},
    ]
    counts = [200, 17, 15, 1]
    rows = [
        replace(numbered(1000 * number + kind), **{"tags": None, "prompt_tokens": number or None, **changes})
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
