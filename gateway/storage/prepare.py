"""What a gateway finds or makes in its database before it serves: tables, pepper, first key.

What has to be written is written by a process of its own, ``python -m gateway.storage.prepare``: migrations need
Alembic, which the process that goes on to serve would keep in memory to its end. After the first start there is nothing
to write.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from typing import Any, Final

from gateway.storage import errors
from gateway.storage.database import Database
from gateway.storage.errors import StorageError
from gateway.storage.first_key import FirstKey, ensure_first_key, find_first_key
from gateway.storage.keys import open_key_store
from gateway.storage.pepper import remembered_check
from gateway.storage.schema import prepare_schema, schema_state

_COMMAND: Final = (sys.executable, "-P", "-m", "gateway.storage.prepare")


async def prepare(url: str, *, migrate: bool, first_key: bool) -> FirstKey | None:
    """Bring the database at *url* to where workers can start on it; returns the first key, where there is to be one.

    *migrate* is as for `prepare_schema`. Raises the `StorageError` that says what is wrong, whichever process met it.
    """
    database = Database(url)
    await database.connect()
    try:
        if (await schema_state(database)).is_current and await remembered_check(database) is not None:
            if not first_key:
                return None
            found = await find_first_key(await open_key_store(database), database.url.beside(".key"))
            if found is not None:
                return found
    finally:
        await database.aclose()
    secret, is_new = await _in_another_process({"url": url, "migrate": migrate, "first_key": first_key})
    return FirstKey(secret, database.url.beside(".key"), is_new) if secret else None


async def write(url: str, *, migrate: bool, first_key: bool) -> FirstKey | None:
    """As `prepare`, all in this process."""
    database = Database(url)
    await database.connect()
    try:
        await prepare_schema(database, migrate=migrate)
        store = await open_key_store(database)
        return await ensure_first_key(store, database.url.beside(".key")) if first_key else None
    finally:
        await database.aclose()


async def _in_another_process(orders: dict[str, Any]) -> tuple[str, bool]:
    """The secret of the first key, empty where there is none, and whether it is new."""
    process = await asyncio.create_subprocess_exec(
        *_COMMAND,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C reaches every process of the terminal's group; it is to end by us alone
    )
    try:
        said, _ = await process.communicate(json.dumps(orders).encode())  # not as arguments: an address has a password
    finally:
        with suppress(ProcessLookupError):
            process.kill()  # who is interrupted leaves no migration behind; a transaction that is broken off is undone
        await process.wait()
    try:
        outcome = json.loads(said)
    except ValueError:
        raise StorageError(
            f"Preparing the database ended with exit code {process.returncode}; what was wrong stands above."
        ) from None
    if "error" in outcome:
        raise getattr(errors, outcome["error"])(outcome["message"])
    return outcome["secret"], outcome["is_new"]


def _main() -> None:
    orders = json.load(sys.stdin)
    outcome: dict[str, object]
    try:
        made = asyncio.run(write(**orders))
    except StorageError as error:
        outcome = {"error": type(error).__name__, "message": error.message}
    else:
        outcome = {"secret": made.secret if made else "", "is_new": made is not None and made.is_new}
    json.dump(outcome, sys.stdout)


if __name__ == "__main__":
    _main()
