"""An authenticator over a real store, with a clock of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from gateway.pipeline.authenticate import Authenticator
from gateway.storage.database import Database
from gateway.storage.keys import KeyStore, open_key_store
from gateway.storage.schema import prepare_schema
from gateway.storage.statements import Row
from tests.unit.pipeline.authentication.asking import Clock


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[KeyStore]:
    database = Database(f"sqlite:///{tmp_path}/gateway.db")
    await database.connect()
    await prepare_schema(database)
    yield await open_key_store(database, {})
    await database.aclose()


@pytest.fixture
def clock(store: KeyStore) -> Clock:
    store._clock = clock = Clock()
    return clock


@pytest.fixture
async def authenticator(store: KeyStore, clock: Clock) -> Authenticator:
    authenticator = Authenticator(store, clock=clock, monotonic=clock)
    await authenticator.poll()
    return authenticator


@pytest.fixture
def queries(store: KeyStore, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every statement that requests send to the database."""
    statements: list[str] = []
    fetch = store.database.fetch

    async def noted(statement: str, *values: Any) -> Sequence[Row]:
        statements.append(statement)
        return await fetch(statement, *values)

    monkeypatch.setattr(store.database, "fetch", noted)
    return statements
