"""A statement whose caller is cancelled does not go on at the server of PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import asyncpg
import pytest
from sqlalchemy import text

from gateway.storage.database import Database
from gateway.storage.migration import ADVISORY_LOCK
from gateway.storage.schema import prepare_schema

_RUNNING = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'switchgear' AND state = 'active'"


async def _in_session(database: Database) -> None:
    async with database.begin() as session:
        await session.execute(text("SELECT pg_sleep(60)"))


async def _by_fetch(database: Database) -> None:
    await database.fetch("SELECT pg_sleep(60)::text")


async def _in_migration(database: Database) -> None:
    await prepare_schema(database, migrate=True)


@pytest.mark.parametrize("kind", ["postgresql"], indirect=True)
@pytest.mark.parametrize("work", [_in_session, _by_fetch, _in_migration])
async def test_the_server_gives_up_what_nobody_waits_for(
    empty_url: str, work: Callable[[Database], Awaitable[None]]
) -> None:
    watcher = await asyncpg.connect(empty_url, server_settings={"application_name": "watcher"})
    await watcher.execute(f"SELECT pg_advisory_lock({ADVISORY_LOCK})")
    database = Database(empty_url, patience_seconds=60.0)
    await database.connect()
    task = asyncio.ensure_future(work(database))
    await _until(watcher, 1)

    task.cancel()
    with suppress(asyncio.CancelledError):
        await asyncio.wait_for(task, 8)  # less than any limit of a statement

    await _until(watcher, 0)
    await database.aclose()
    await watcher.close()


async def _until(watcher: Any, running: int) -> None:
    """Return when that many statements of ours run."""
    async with asyncio.timeout(10):
        while await watcher.fetchval(_RUNNING) != running:
            await asyncio.sleep(0.02)
