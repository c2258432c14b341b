"""The schema's version: which one the database has, which one this code needs, and what to do when they differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gateway.late import load
from gateway.storage.database import Database
from gateway.storage.errors import SchemaError

HEAD: Final = "0001"
"""The newest migration. Kept here so that a start with a current schema need not import Alembic."""

_IS_THERE: Final = {
    True: "SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'alembic_version'",
    False: "SELECT 1 WHERE to_regclass('alembic_version') IS NOT NULL",
}
"""By whether the database is SQLite: one row when it has migrations of anybody."""


@dataclass(frozen=True, slots=True)
class SchemaState:
    """*current* is None for a database without our tables."""

    current: str | None
    head: str

    @property
    def is_current(self) -> bool:
        return self.current == self.head


async def schema_state(database: Database) -> SchemaState:
    """The version the database has and the one this code needs."""
    current: str | None = None
    if await database.fetch(_IS_THERE[database.is_sqlite]):
        rows = await database.fetch("SELECT version_num FROM alembic_version")
        current = rows[0][0] if rows else None
    return SchemaState(current, HEAD)


async def prepare_schema(database: Database, *, migrate: bool = False) -> None:
    """Make sure that the tables are those this code needs, or raise `SchemaError` with what to do.

    A SQLite file is upgraded on the way: it has one owner, who has just started a new version. A PostgreSQL server
    may have other users, so it is upgraded only when *migrate* says so.
    """
    state = await schema_state(database)
    if state.is_current:
        return
    migration = await load("gateway.storage.migration")
    if migration.is_ahead(state):
        raise SchemaError(
            f"The schema of {database.url} has version {state.current}, newer than this program knows "
            f"({state.head}). Install the version of switchgear that made it, or a later one."
        )
    if not (database.is_sqlite or migrate):
        raise SchemaError(
            f"The schema of {database.url} has version {state.current or 'none'} and this program needs {state.head}. "
            "Run `gateway db upgrade`, or start with `gateway serve --migrate`."
        )
    await migration.upgrade_schema(database)
