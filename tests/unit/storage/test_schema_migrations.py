"""From an empty database to the schema the code needs, and the cases where that is not done."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text

from gateway.package_data import data_path
from gateway.storage.database import Database
from gateway.storage.errors import SchemaError
from gateway.storage.migration import ADVISORY_LOCK, upgrade_schema
from gateway.storage.schema import HEAD, prepare_schema, schema_state
from gateway.storage.tables import metadata


@pytest.fixture
async def empty(empty_url: str) -> Any:
    database = Database(empty_url)
    await database.connect()
    yield database
    await database.aclose()


async def _claim_version(database: Database, version: str) -> None:
    async with database.begin() as connection:
        await connection.execute(text("UPDATE alembic_version SET version_num = :version"), {"version": version})


def test_the_head_in_the_code_is_the_newest_migration() -> None:
    assert ScriptDirectory(str(data_path("migrations"))).get_current_head() == HEAD


async def test_an_upgrade_makes_exactly_the_tables_of_the_code(empty: Database) -> None:
    assert (await schema_state(empty)).current is None

    before = await upgrade_schema(empty)

    assert before.current is None
    assert (await schema_state(empty)).is_current
    async with empty.read() as connection:
        differences = await connection.run_sync(
            lambda sync: compare_metadata(MigrationContext.configure(sync, opts={"compare_type": True}), metadata)
        )
    assert differences == []


async def test_a_second_upgrade_changes_nothing(empty: Database) -> None:
    await upgrade_schema(empty)

    assert (await upgrade_schema(empty)).is_current
    assert (await schema_state(empty)).is_current


async def test_a_failed_upgrade_leaves_nothing_behind(empty: Database) -> None:
    async with empty.begin() as connection:
        await connection.execute(text("CREATE TABLE requests (mine TEXT)"))  # the migration trips over this one

    with pytest.raises(SchemaError, match=r"not ours.*requests"):
        await upgrade_schema(empty)

    async with empty.read() as connection:
        tables = await connection.run_sync(lambda sync: inspect(sync).get_table_names())
    assert tables == ["requests"]


async def test_sqlite_is_upgraded_on_the_way_and_postgresql_only_on_request(empty: Database) -> None:
    if empty.is_sqlite:
        await prepare_schema(empty)
    else:
        with pytest.raises(SchemaError, match=r"gateway db upgrade.*--migrate"):
            await prepare_schema(empty)
        await prepare_schema(empty, migrate=True)

    assert (await schema_state(empty)).is_current


async def test_a_schema_of_a_later_version_is_refused(empty: Database) -> None:
    await upgrade_schema(empty)
    await _claim_version(empty, "9999")

    with pytest.raises(SchemaError, match=r"9999, newer than this program knows"):
        await prepare_schema(empty, migrate=True)
    with pytest.raises(SchemaError, match="ahead"):
        await upgrade_schema(empty)


async def test_a_migration_waits_for_another_one_longer_than_statements_may_take(empty_url: str) -> None:
    first, second = Database(empty_url, patience_seconds=0.1), Database(empty_url, patience_seconds=0.1)
    await first.connect()
    await second.connect()
    async with first.begin() as connection:
        if not first.is_sqlite:
            await connection.execute(text(f"SELECT pg_advisory_xact_lock({ADVISORY_LOCK})"))
        waiting = asyncio.create_task(upgrade_schema(second))
        await asyncio.sleep(0.5)
        assert not waiting.done()
    await waiting
    state = await schema_state(first)
    await first.aclose()
    await second.aclose()

    assert state.is_current
