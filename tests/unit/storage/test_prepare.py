"""What is made before a gateway serves: by another process, once, with its errors told as if it had been this one."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
from contextlib import closing, suppress
from pathlib import Path

import pytest

from gateway.storage import prepare as module
from gateway.storage.database import Database
from gateway.storage.errors import PepperError, SchemaError, StorageError, StorageUnavailableError
from gateway.storage.keys import open_key_store
from gateway.storage.prepare import prepare
from gateway.storage.schema import schema_state


@pytest.fixture
def no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_COMMAND", ("/nowhere",))


async def test_tables_pepper_and_first_key_are_made_once(
    empty_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await prepare(empty_url, migrate=True, first_key=True)
    monkeypatch.setattr(module, "_COMMAND", ("/nowhere",))
    again = await prepare(empty_url, migrate=False, first_key=True)

    assert first is not None
    assert again is not None
    assert (first.is_new, again.is_new) == (True, False)
    assert first.secret == again.secret == (tmp_path / "gateway.key").read_text().strip()
    database = Database(empty_url)
    await database.connect()
    store = await open_key_store(database)
    assert (await schema_state(database)).is_current
    assert [record.key.name for record in await store.page()] == ["first key"]
    await database.aclose()


async def test_without_a_first_key_the_rest_is_made(empty_url: str, tmp_path: Path) -> None:
    assert await prepare(empty_url, migrate=True, first_key=False) is None

    assert (tmp_path / "gateway.pepper").exists()
    assert not (tmp_path / "gateway.key").exists()


async def test_a_revoked_first_key_is_replaced(database_url: str, database: Database) -> None:
    old = await prepare(database_url, migrate=False, first_key=True)
    assert old is not None
    store = await open_key_store(database)
    await store.revoke((await store.page())[0].key.id)

    new = await prepare(database_url, migrate=False, first_key=True)

    assert new is not None
    assert new.is_new
    assert new.secret != old.secret


async def test_what_is_wrong_with_the_schema_is_told_as_if_it_had_been_met_here(empty_url: str, kind: str) -> None:
    if kind == "postgresql":
        with pytest.raises(SchemaError, match=r"gateway db upgrade.*--migrate"):
            await prepare(empty_url, migrate=False, first_key=False)
    await prepare(empty_url, migrate=True, first_key=False)
    database = Database(empty_url)
    await database.connect()
    await database.fetch("UPDATE alembic_version SET version_num = '9999'")
    await database.aclose()

    with pytest.raises(SchemaError, match="newer than this program knows"):
        await prepare(empty_url, migrate=True, first_key=False)


@pytest.mark.usefixtures("no_process")
async def test_what_is_wrong_with_the_database_needs_no_other_process(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="Cannot open the database file"):
        await prepare("sqlite:////nowhere/at/all/gateway.db", migrate=False, first_key=True)
    with pytest.raises(StorageUnavailableError, match="cannot be reached"):
        await prepare("postgresql://me@127.0.0.1:1/x", migrate=False, first_key=True)


async def test_a_lost_pepper_and_a_foreign_key_file_are_told(empty_url: str, tmp_path: Path) -> None:
    await prepare(empty_url, migrate=True, first_key=True)
    (tmp_path / "gateway.key").write_text("-----BEGIN PRIVATE KEY-----")
    with pytest.raises(StorageError, match="holds no key of this program"):
        await prepare(empty_url, migrate=False, first_key=True)
    (tmp_path / "gateway.pepper").unlink()
    with pytest.raises(PepperError, match="is missing"):
        await prepare(empty_url, migrate=False, first_key=True)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at processes as Linux shows them")
async def test_who_is_interrupted_leaves_no_process_behind(tmp_path: Path) -> None:
    path = tmp_path / "gateway.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as blocker:
        blocker.execute("PRAGMA journal_mode=WAL").fetchall()
        blocker.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(prepare(f"sqlite:///{path}", migrate=False, first_key=True))
        async with asyncio.timeout(10):
            while not _preparing():
                await asyncio.sleep(0.01)
        waiting.cancel()
        await asyncio.wait({waiting})

        assert waiting.cancelled()
        assert _preparing() == []


def _preparing() -> list[str]:
    """The commands of our children that prepare a database."""
    ours = str(os.getpid())
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if status.read_text().rpartition(")")[2].split()[1] == ours:
                found.append(status.with_name("cmdline").read_text())
    return [command for command in found if "gateway.storage.prepare" in command]


async def test_a_process_that_says_nothing_is_an_error(
    empty_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_COMMAND", ("/bin/sh", "-c", "cat > /dev/null; exit 3"))

    with pytest.raises(StorageError, match="exit code 3"):
        await prepare(empty_url, migrate=True, first_key=True)
