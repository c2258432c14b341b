"""Several processes on one database: starting together, and dying in the middle."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.storage.database import Database
from gateway.storage.keys import open_key_store
from gateway.storage.schema import prepare_schema, schema_state

_START = """
import asyncio, sys
from pathlib import Path
from gateway.storage.database import Database
from gateway.storage.first_key import ensure_first_key
from gateway.storage.keys import open_key_store
from gateway.storage.schema import prepare_schema

async def main():
    sys.stdin.readline()  # all begin at the same moment
    database = Database(sys.argv[1])
    await database.connect()
    await prepare_schema(database, migrate=True)
    store = await open_key_store(database)
    print((await ensure_first_key(store, Path("gateway.key"))).secret, store.digest.check_value)
    await database.aclose()

asyncio.run(main())
"""

_WRITE = """
import asyncio, sys, time
from gateway.storage.database import Database
from gateway.storage.keys import open_key_store
from gateway.storage.request_row import RequestRow
from gateway.storage.requests import RequestLog
from gateway.storage.schema import prepare_schema

async def main():
    database = Database(sys.argv[1])
    await database.connect()
    await prepare_schema(database, migrate=True)
    store = await open_key_store(database)
    log = RequestLog(database)
    for number in range(1_000_000):
        for _ in range(200):
            log.add(RequestRow("r", 1, None, None, None, None, "chat_completions", None, None, None, 200, None, False))
        await log.flush()
        await store.create(f"key {number}")
        print(number + 1, flush=True)

asyncio.run(main())
"""


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("GATEWAY_")}


async def test_workers_that_start_together_agree_on_schema_pepper_and_first_key(empty_url: str, tmp_path: Path) -> None:
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", _START, empty_url],
            cwd=tmp_path,
            env=_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("\n")
        worker.stdin.flush()
    said = [worker.communicate(timeout=60) for worker in workers]

    assert [worker.returncode for worker in workers] == [0] * 4, said
    assert len({out for out, _ in said}) == 1
    database = Database(empty_url)
    await database.connect()
    store = await open_key_store(database)
    keys, state = await store.page(), await schema_state(database)
    await database.aclose()
    assert len(keys) == 1
    assert state.is_current
    expected = {"gateway.key", "gateway.pepper"} | ({"gateway.db"} if database.is_sqlite else set())
    assert {path.name for path in tmp_path.iterdir()} == expected


async def test_a_kill_in_the_middle_of_writing_leaves_a_database_with_everything_that_was_committed(
    empty_url: str, tmp_path: Path
) -> None:
    worker = subprocess.Popen(
        [sys.executable, "-c", _WRITE, empty_url],
        cwd=tmp_path,
        env=_environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert worker.stdout is not None
    try:
        for line in worker.stdout:
            if int(line) >= 5:
                break
    finally:
        worker.send_signal(signal.SIGKILL)
    rounds = max([5, *(int(line) for line in worker.stdout)])
    worker.wait(timeout=10)
    worker.stdout.close()

    database = Database(empty_url)
    await database.connect()
    await prepare_schema(database)
    store = await open_key_store(database)
    async with database.read() as connection:
        count = (await connection.exec_driver_sql("SELECT count(*) FROM requests")).scalar_one()
    keys = await store.page(limit=100_000)
    await store.create("after the kill")
    await database.aclose()

    assert count % 200 == 0
    assert rounds * 200 <= count <= (rounds + 1) * 200
    assert rounds <= len(keys) <= rounds + 1


@pytest.mark.parametrize("table", ["settings", "api_keys", "requests"])
async def test_a_migrator_that_is_killed_leaves_the_old_schema(tmp_path: Path, table: str) -> None:
    path = tmp_path / "gateway.db"
    script = f"""
import asyncio, os, signal, sys
from sqlalchemy import Engine, event
from gateway.storage.database import Database
from gateway.storage.schema import prepare_schema

async def main():
    database = Database(sys.argv[1])
    await database.connect()
    @event.listens_for(Engine, "after_cursor_execute")
    def die(connection, cursor, statement, *rest):
        if "CREATE TABLE {table}" in statement:
            os.kill(os.getpid(), signal.SIGKILL)
    await prepare_schema(database)

asyncio.run(main())
"""
    killed = subprocess.run(
        [sys.executable, "-c", script, f"sqlite:///{path}"], cwd=tmp_path, env=_environment(), timeout=60, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    connection.close()

    database = Database(f"sqlite:///{path}")
    await database.connect()
    await prepare_schema(database)
    state = await schema_state(database)
    await database.aclose()
    assert state.is_current
