"""Reaching the database, and what is said when that fails."""

from __future__ import annotations

import asyncio
import socket
import sqlite3
import stat
import threading
import time
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from sqlalchemy import insert, select, text

from gateway.storage.database import Database
from gateway.storage.errors import StorageError, StorageUnavailableError
from gateway.storage.tables import settings


async def test_a_new_sqlite_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/gateway.db")
    await database.connect()
    async with database.begin() as connection:
        await connection.execute(text("CREATE TABLE t (x)"))

    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    await database.aclose()

    assert modes == {"gateway.db": 0o600, "gateway.db-wal": 0o600, "gateway.db-shm": 0o600}


async def test_sqlite_is_set_up_for_many_readers_and_waiting_writers(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/gateway.db")
    await database.connect()
    async with database.read() as connection:
        names = ("journal_mode", "foreign_keys", "busy_timeout", "cache_size")
        found = [await connection.scalar(text(f"PRAGMA {name}")) for name in names]
    await database.aclose()

    assert found == ["wal", 1, 10_000, -256]


async def test_a_transaction_is_kept_whole_or_not_at_all(database: Database) -> None:
    async def break_off() -> None:
        async with database.begin() as connection:
            await connection.execute(insert(settings).values(name="half", value="done"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await break_off()

    async with database.begin() as connection:
        await connection.execute(insert(settings).values(name="whole", value="done"))
    async with database.read() as connection:
        names = (await connection.scalars(select(settings.c.name))).all()

    assert names == ["whole"]


async def test_writers_of_one_file_wait_for_each_other(tmp_path: Path) -> None:
    databases = [Database(f"sqlite:///{tmp_path}/gateway.db") for _ in range(3)]
    for database in databases:
        await database.connect()
    async with databases[0].begin() as connection:
        await connection.execute(text("CREATE TABLE counter (n INTEGER)"))
        await connection.execute(text("INSERT INTO counter VALUES (0)"))

    async def count(database: Database) -> None:
        for _ in range(20):
            async with database.begin() as connection:
                n = await connection.scalar(text("SELECT n FROM counter"))
                await connection.execute(text("UPDATE counter SET n = :n"), {"n": n + 1})

    await asyncio.gather(*(count(database) for database in databases))
    async with databases[0].read() as connection:
        total = await connection.scalar(text("SELECT n FROM counter"))
    for database in databases:
        await database.aclose()

    assert total == 60


async def test_cancelled_queries_give_their_connections_back(database: Database) -> None:
    async def query() -> None:
        async with database.read() as connection:
            await connection.execute(select(settings))
            await asyncio.sleep(30)

    for _ in range(3):
        tasks = [asyncio.create_task(query()) for _ in range(4)]
        await asyncio.sleep(0.02)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async with asyncio.timeout(3):
        await database.ping()


@pytest.mark.parametrize("turns", range(8))
def test_a_connection_given_up_while_it_opens_leaves_no_thread_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    """Such a thread would fail once the event loop is closed, with a traceback after the last line of a clean end."""

    def slow(*arguments: Any, **options: Any) -> sqlite3.Connection:
        time.sleep(0.05)
        return sqlite3.Connection(*arguments, **options)

    async def give_up() -> None:
        database = Database(f"sqlite:///{tmp_path}/gateway.db")
        await database.connect()
        async with database.read():  # the one connection of the pool
            monkeypatch.setattr(sqlite3, "connect", slow)
            opening = asyncio.ensure_future(database.ping())
            for _ in range(turns):
                await asyncio.sleep(0)
            opening.cancel()
            await asyncio.wait({opening})
        await database.aclose()

    failed: list[object] = []
    monkeypatch.setattr(threading, "excepthook", failed.append)
    before = set(threading.enumerate())
    asyncio.run(give_up())
    for thread in set(threading.enumerate()) - before:
        thread.join(5)

    assert failed == []


@pytest.mark.parametrize("place", ["/proc/gateway.db", "/proc/version/gateway.db", "/nowhere/at/all/gateway.db"])
async def test_a_place_that_cannot_be_written_is_named_with_the_setting(place: str) -> None:
    with pytest.raises(StorageError, match=rf"Cannot open the database file {place}: .*GATEWAY_DATABASE_URL"):
        await Database(f"sqlite:///{place}").connect()


async def test_a_file_that_is_no_database_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "gateway.db"
    path.write_text("Dear diary, " * 100)

    with pytest.raises(StorageError, match="no SQLite database"):
        await Database(f"sqlite:///{path}").connect()

    assert path.read_text() == "Dear diary, " * 100


async def test_an_unreachable_server_is_said_to_be_unreachable() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening: connections are refused
        port = taken.getsockname()[1]

        with pytest.raises(StorageUnavailableError, match=r"cannot be reached.*Check that the server runs") as caught:
            await Database(f"postgresql://me:hunter2@127.0.0.1:{port}/x").connect()

    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("url", ["postgresql://me:hunter2@db:port/x", "postgresql://me:hunter2@[::1/x"])
async def test_an_address_that_is_none_is_refused_without_the_password(url: str) -> None:
    with pytest.raises(StorageError, match=r"no usable address.*storage\.database_url") as caught:
        await Database(url).connect()

    assert "hunter2" not in str(caught.value)


async def test_a_directory_in_the_place_of_the_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=f"{tmp_path} cannot be opened"):
        await Database(f"sqlite:///{tmp_path}").connect()


async def test_a_file_name_may_hold_any_characters(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/a %20 #ä.db")
    await database.connect()
    await database.aclose()

    assert [path.name for path in tmp_path.iterdir()] == ["a %20 #ä.db"]


async def test_a_statement_that_takes_too_long_is_given_up(postgres: Any) -> None:
    database = Database(postgres.get_uri(), patience_seconds=0.2)
    await database.connect()
    with pytest.raises(StorageUnavailableError, match="no answer in time"):
        async with database.read() as connection:
            await connection.execute(text("SELECT pg_sleep(30)"))
    await database.ping()
    await database.aclose()


async def test_a_missing_postgresql_database_is_named(postgres: Any) -> None:
    with pytest.raises(StorageError, match=r"no such database.*nowhere"):
        await Database(postgres.get_uri(database="nowhere")).connect()


async def test_a_wrong_password_is_said_to_be_wrong_and_not_repeated(postgres: Any) -> None:
    uri = postgres.get_uri()
    connection = await asyncpg.connect(uri)
    await connection.execute("CREATE ROLE guarded LOGIN PASSWORD 'right-password'")
    hba = Path(await connection.fetchval("SHOW hba_file"))
    hba.write_text("local all guarded scram-sha-256\n" + hba.read_text())
    await connection.execute("SELECT pg_reload_conf()")
    await connection.close()

    with pytest.raises(StorageError, match="refused the user name or password") as caught:
        await Database(uri.replace("postgres:@", "guarded:wrong-password@")).connect()
    assert not isinstance(caught.value, StorageUnavailableError)
    assert "wrong-password" not in str(caught.value)

    database = Database(uri.replace("postgres:@", "guarded:right-password@"))
    await database.connect()
    await database.aclose()


async def test_using_a_closed_database_is_an_error_of_its_own(database: Database) -> None:
    await database.aclose()
    await database.aclose()

    with pytest.raises(StorageError, match="closed"):
        await database.ping()
