"""The schema's version: which one the database has, which one this code needs, and the way from one to the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import inspect, text
from sqlalchemy.engine import Connection

from gateway.package_data import data_path
from gateway.storage.database import Database
from gateway.storage.errors import SchemaError
from gateway.storage.session import Session
from gateway.storage.tables import HEAD

# Any fixed number will do, as long as every version of this program locks the same one.
_ADVISORY_LOCK: Final = 7_215_094_318


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
    async with database.read() as connection:
        return SchemaState(current=await _current(connection), head=HEAD)


async def prepare_schema(database: Database, *, migrate: bool = False) -> None:
    """Make sure that the tables are those this code needs, or raise `SchemaError` with what to do.

    A SQLite file is upgraded on the way: it has one owner, who has just started a new version. A PostgreSQL server
    may have other users, so it is upgraded only when *migrate* says so.
    """
    state = await schema_state(database)
    if state.is_current:
        return
    if _is_ahead(state):
        raise SchemaError(
            f"The schema of {database.url} has version {state.current}, newer than this program knows "
            f"({state.head}). Install the version of switchgear that made it, or a later one."
        )
    if not (database.is_sqlite or migrate):
        raise SchemaError(
            f"The schema of {database.url} has version {state.current or 'none'} and this program needs {state.head}. "
            "Run `gateway db upgrade`, or start with `gateway serve --migrate`."
        )
    await upgrade_schema(database)


async def upgrade_schema(database: Database) -> SchemaState:
    """Bring the schema up to date in one transaction, and return the state it was in.

    Several processes may try at once: one does it and the others find it done. A process killed in the middle
    leaves the old schema. A schema that is ahead is a `SchemaError`.
    """
    async with database.begin_migration() as connection:
        if not database.is_sqlite:  # SQLite's transaction holds the only write lock already
            await connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _ADVISORY_LOCK})
        state = SchemaState(current=await _current(connection), head=HEAD)
        if _is_ahead(state):
            raise SchemaError(
                f"The schema of {database.url} ({state.current}) is ahead of this program ({state.head})."
            )
        if not state.is_current:
            await connection.run_sync(_run_alembic)
    return state


async def _current(connection: Session) -> str | None:
    # Asking for the table first: a failed query would end a PostgreSQL transaction.
    if not await connection.run_sync(lambda sync: inspect(sync).has_table("alembic_version")):
        return None
    version: str | None = await connection.scalar(text("SELECT version_num FROM alembic_version"))
    return version


def _is_ahead(state: SchemaState) -> bool:
    if state.current is None or state.is_current:
        return False
    from alembic.script import ScriptDirectory

    known = {script.revision for script in ScriptDirectory(str(data_path("migrations"))).walk_revisions()}
    return state.current not in known


def _run_alembic(connection: Connection) -> None:
    # Alembic takes a fifth of a second to import, which a start with a current schema need not spend.
    from alembic import command
    from alembic.config import Config

    attributes: dict[str, Any] = {"connection": connection}
    config = Config(attributes=attributes)
    config.set_main_option("script_location", str(data_path("migrations")))
    command.upgrade(config, "head")
