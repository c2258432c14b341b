"""`gateway db`: the schema of the database, and its upgrade."""

from __future__ import annotations

from typing import Annotated

import typer

from gateway.cli.console import fail, out, print_json
from gateway.cli.options import ConfigFile
from gateway.cli.store import with_database
from gateway.storage.database import Database
from gateway.storage.migration import upgrade_schema
from gateway.storage.schema import SchemaState, schema_state

app = typer.Typer(no_args_is_help=True, help="Upgrade the database, or show its revision.")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def upgrade(config: ConfigFile = None, as_json: AsJson = False) -> None:
    """Bring the tables to what this version needs. Changes nothing when they are; safe while gateways run."""

    async def work(database: Database) -> tuple[SchemaState, str]:
        return await upgrade_schema(database), str(database.url)

    before, name = with_database(config, work)
    if as_json:
        print_json({"database": name, "from": before.current, "to": before.head})
    elif before.is_current:
        out().print(f"{name} is at {before.head} already", markup=False)
    else:
        out().print(f"{name} upgraded from {before.current or 'nothing'} to {before.head}", markup=False)


@app.command()
def current(config: ConfigFile = None, as_json: AsJson = False) -> None:
    """Show the revision of the tables and the one this version needs; ends with 1 when they differ."""

    async def work(database: Database) -> tuple[SchemaState, str]:
        return await schema_state(database), str(database.url)

    state, name = with_database(config, work, must_exist=True)
    if as_json:
        print_json({"database": name, "current": state.current, "head": state.head, "is_current": state.is_current})
    else:
        out().print(f"{name} is at {state.current or 'nothing'}, this version needs {state.head}", markup=False)
    if not state.is_current:
        if as_json:
            raise typer.Exit(1)
        fail("the database is not at the revision this version needs. Run `gateway db upgrade`.")
