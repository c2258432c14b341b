"""From an older schema to the one this code needs, by Alembic; loaded when there is something to migrate."""

from __future__ import annotations

from typing import Any, Final

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text
from sqlalchemy.engine import Connection

from gateway.package_data import data_path
from gateway.storage.database import Database
from gateway.storage.errors import SchemaError
from gateway.storage.schema import HEAD, SchemaState
from gateway.storage.session import Session

# Any fixed number will do, as long as every version of this program locks the same one.
ADVISORY_LOCK: Final = 7_215_094_318


async def upgrade_schema(database: Database) -> SchemaState:
    """Bring the schema up to date in one transaction, and return the state it was in.

    Several processes may try at once: one does it and the others find it done. A process killed in the middle
    leaves the old schema. A schema that is ahead is a `SchemaError`.
    """
    async with database.begin_migration() as connection:
        if not database.is_sqlite:  # SQLite's transaction holds the only write lock already
            await connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": ADVISORY_LOCK})
        state = SchemaState(current=await _current(connection), head=HEAD)
        if is_ahead(state):
            raise SchemaError(
                f"The schema of {database.url} ({state.current}) is ahead of this program ({state.head})."
            )
        if not state.is_current:
            await connection.run_sync(_run_alembic)
    return state


def is_ahead(state: SchemaState) -> bool:
    """Whether the schema is of a version that this program does not know, so of a later one."""
    if state.current is None or state.is_current:
        return False
    known = {script.revision for script in ScriptDirectory(str(data_path("migrations"))).walk_revisions()}
    return state.current not in known


async def _current(connection: Session) -> str | None:
    # Asking for the table first: a failed query would end a PostgreSQL transaction.
    if not await connection.run_sync(lambda sync: inspect(sync).has_table("alembic_version")):
        return None
    version: str | None = await connection.scalar(text("SELECT version_num FROM alembic_version"))
    return version


def _run_alembic(connection: Connection) -> None:
    attributes: dict[str, Any] = {"connection": connection}
    config = Config(attributes=attributes)
    config.set_main_option("script_location", str(data_path("migrations")))
    command.upgrade(config, "head")
