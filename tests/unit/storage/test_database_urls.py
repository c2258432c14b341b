"""Which database addresses are understood, and how they are shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.storage.errors import StorageError
from gateway.storage.urls import DEFAULT_URL, parse_database_url


@pytest.mark.parametrize(
    ("url", "path"),
    [
        (DEFAULT_URL, Path.cwd() / "gateway.db"),
        ("sqlite:///data/keys.db", Path.cwd() / "data/keys.db"),
        ("sqlite+aiosqlite:////var/lib/gateway.db", Path("/var/lib/gateway.db")),
    ],
)
def test_a_sqlite_address_names_a_file(url: str, path: Path) -> None:
    assert parse_database_url(url).sqlite_path == path


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+asyncpg", "POSTGRES"])
def test_every_spelling_of_postgresql_is_the_same(scheme: str) -> None:
    url = parse_database_url(f"{scheme}://me:pw@db:5432/gateway?sslmode=require")

    assert url.postgres_dsn == "postgresql://me:pw@db:5432/gateway?sslmode=require"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hunter2@db/gateway",
        "postgresql://me:hunt%40er2@db/gateway",
        "postgresql://me@db/gateway?password=hunter2",
        "postgresql://me:hunter2@/gateway?host=/run/postgresql",
    ],
)
def test_a_password_is_not_shown(url: str) -> None:
    parsed = parse_database_url(url)

    for shown in (str(parsed), repr(parsed)):
        assert "hunt" not in shown
        assert "gateway" in shown


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "sqlite+aiosqlite://"])
def test_an_in_memory_database_is_refused_with_the_reason(url: str) -> None:
    with pytest.raises(StorageError, match="cannot be shared by workers"):
        parse_database_url(url)


@pytest.mark.parametrize("url", ["mysql://db/gateway", "gateway.db", "", "postgresql+psycopg2://db/x"])
def test_an_unknown_scheme_is_refused_with_the_known_ones(url: str) -> None:
    with pytest.raises(StorageError, match=r"sqlite\+aiosqlite.*postgresql\+asyncpg"):
        parse_database_url(url)


def test_companion_files_are_named_after_the_database() -> None:
    assert parse_database_url("sqlite:////srv/llm.db").beside(".pepper") == Path("/srv/llm.pepper")
    assert parse_database_url("postgres://db/x").beside(".pepper") == Path.cwd() / "gateway.pepper"
