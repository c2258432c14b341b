"""SQL of ours on both databases: values, failures in words, and tasks that leave in the middle."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gateway.storage.database import Database
from gateway.storage.errors import RejectedError, SchemaError, StorageError, StorageUnavailableError

_INSERT = "INSERT INTO settings (name, value) VALUES ($1, $2)"


async def test_one_statement_serves_both_databases(database: Database) -> None:
    await database.fetch(_INSERT, "a", "it's $1")
    await database.fetch(_INSERT, "b", "two")

    rows = await database.fetch("SELECT value, name FROM settings WHERE name IN ($2, $1) ORDER BY name", "b", "a")

    assert [tuple(row) for row in rows] == [("it's $1", "a"), ("two", "b")]


async def test_a_value_that_a_rule_forbids_is_rejected(database: Database) -> None:
    await database.fetch(_INSERT, "a", "one")

    with pytest.raises(RejectedError, match="does not take a value"):
        await database.fetch(_INSERT, "a", "two")
    with pytest.raises(RejectedError, match="does not take a value"):
        await database.fetch(_INSERT, "b", None)

    assert [row[0] for row in await database.fetch("SELECT value FROM settings")] == ["one"]


async def test_a_table_that_is_missing_is_the_schemas_fault(database: Database) -> None:
    with pytest.raises(SchemaError, match="gateway db upgrade"):
        await database.fetch("SELECT 1 FROM nowhere")


async def test_a_statement_that_the_server_does_not_understand_is_no_outage(postgres: Any) -> None:
    database = Database(postgres.get_uri())
    await database.connect()
    with pytest.raises(StorageError, match="refused a statement") as caught:
        await database.fetch("SELEKT 1")
    await database.aclose()

    assert not isinstance(caught.value, StorageUnavailableError)


async def test_a_server_that_was_restarted_is_reached_again(make_postgres: Callable[[], Any]) -> None:
    server = make_postgres()
    database = Database(server.get_uri())
    await database.connect()
    server.stop()
    with pytest.raises(StorageUnavailableError):
        await database.ping()
    server.ensure_postgres_running()

    await database.ping()
    await database.aclose()


async def test_who_is_cancelled_leaves_at_once_and_the_statement_ends_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "gateway.db"
    database = Database(f"sqlite:///{path}")
    await database.connect()
    await database.fetch("CREATE TABLE written (x)")
    with closing(sqlite3.connect(path, isolation_level=None)) as blocker:
        blocker.execute("BEGIN IMMEDIATE")
        writer = asyncio.create_task(database.fetch("INSERT INTO written VALUES ($1)", 1))
        await asyncio.wait({writer}, timeout=0.05)
        writer.cancel()
        await asyncio.wait({writer}, timeout=1)
        assert writer.cancelled()

        closing_ = asyncio.create_task(database.aclose())
        await asyncio.wait({closing_}, timeout=0.05)
        assert not closing_.done()
        blocker.execute("ROLLBACK")
        await closing_
        assert blocker.execute("SELECT x FROM written").fetchall() == [(1,)]
