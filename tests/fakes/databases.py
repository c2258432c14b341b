"""A SQLite file with the current schema, migrated once a process: to copy it is far quicker than to migrate again."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from gateway.storage.database import Database
from gateway.storage.schema import prepare_schema

# The many small databases of a test run are not worth waiting for a disk.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None

_migrated: bytes | None = None


async def migrated_sqlite() -> bytes:
    """The content of a database file that has our tables, and nothing in them."""
    global _migrated
    if _migrated is None:
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
            path = Path(folder, "gateway.db")
            database = Database(f"sqlite:///{path}")
            await database.connect()
            await prepare_schema(database, migrate=True)
            await database.aclose()
            _migrated = path.read_bytes()
    return _migrated
