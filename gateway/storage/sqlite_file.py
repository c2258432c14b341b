"""The SQLite file: made for its owner alone, and every connection to it set up alike."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from gateway.storage.errors import StorageError
from gateway.storage.failures import in_words
from gateway.storage.urls import DatabaseUrl

_CACHE_KIB: Final = 256
"""Pages that each connection keeps. SQLite's own 2 MB were filled by what is only appended, and never read again."""


def prepare_file(url: DatabaseUrl) -> None:
    """Create the SQLite file where there is none, and set what is kept in the file itself."""
    path = url.sqlite_path
    assert path is not None
    try:
        # SQLite gives its -wal and -shm files the mode of the main file, so this one call protects all three.
        # Only a new file may be opened so: closing an old one would drop the locks this process has on it.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        pass
    except OSError as error:
        raise StorageError(
            f"Cannot open the database file {path}: {error.strerror}. "
            "Make its directory writable or set storage.database_url (GATEWAY_DATABASE_URL) to another place."
        ) from error
    # Changing the journal mode does not wait for locks as all else does, and workers start together.
    for patience_seconds in (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, None):
        try:
            with closing(sqlite3.connect(path, isolation_level=None)) as connection:
                connection.execute("PRAGMA journal_mode=WAL").fetchall()
            return
        except sqlite3.Error as error:
            if patience_seconds is None or "locked" not in str(error):
                raise in_words(error, url) from error
            time.sleep(patience_seconds)


def open_file(url: DatabaseUrl, patience_seconds: float) -> sqlite3.Connection:
    """A plain connection to the file, which must be there, for work that stays in one thread of its own."""
    # By a URI because only that can forbid to create the file.
    uri = f"{Path(str(url.sqlite_path)).absolute().as_uri()}?mode=rw"
    connection = sqlite3.connect(uri, uri=True)
    set_up(connection, patience_seconds)
    return connection


def set_up(connection: Any, patience_seconds: float) -> None:
    """What every connection needs, those of SQLAlchemy as well."""
    # Python's sqlite3 would begin transactions by itself, but not before DDL and never as IMMEDIATE.
    connection.isolation_level = None
    cursor = connection.cursor()
    patience = f"busy_timeout={patience_seconds * 1000:.0f}"
    for pragma in (patience, "foreign_keys=ON", "synchronous=NORMAL", f"cache_size=-{_CACHE_KIB}"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
