"""What the commands on the database share: reaching it as the configuration says, and ending well when that fails."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from gateway import interruption
from gateway.cli.console import ExitCode, fail
from gateway.settings import load_settings
from gateway.storage.database import Database
from gateway.storage.errors import StorageError, StorageUnavailableError
from gateway.storage.keys import KeyStore, open_key_store
from gateway.storage.schema import prepare_schema

_Result = TypeVar("_Result")


def with_database(
    config: Path | None, work: Callable[[Database], Awaitable[_Result]], *, must_exist: bool = False
) -> _Result:
    """What *work* returns on the connected database, whatever its schema; ends the command when something fails.

    A SQLite file that is not there is made, unless it *must_exist*.
    """
    url = load_settings(config, environ=os.environ).storage.database_url.get_secret_value()

    async def run() -> _Result:
        database = Database(url)
        path = database.url.sqlite_path
        if must_exist and path is not None and not path.exists():
            raise StorageError(f"there is no {database.url} yet. `gateway db upgrade` or `gateway serve` makes it.")
        async with _connected(database):
            return await work(database)

    try:
        return interruption.run(run())
    except StorageUnavailableError as error:
        fail(error.message, ExitCode.UNREACHABLE)
    except StorageError as error:
        fail(error.message)


def with_keys(config: Path | None, work: Callable[[KeyStore], Awaitable[_Result]]) -> _Result:
    """What *work* returns on the stored keys. A SQLite file is made and upgraded on the way, as `serve` does it."""

    async def on_database(database: Database) -> _Result:
        await prepare_schema(database)
        return await work(await open_key_store(database))

    return with_database(config, on_database)


@asynccontextmanager
async def _connected(database: Database) -> AsyncIterator[None]:
    await database.connect()
    try:
        yield
    finally:
        await database.aclose()
