"""Batches of the request log into a SQLite file, over a connection and in a thread of their own."""

from __future__ import annotations

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from gateway.storage.database import Database
from gateway.storage.failures import in_words
from gateway.storage.request_row import COLUMNS, Batch

_ROWS_A_STATEMENT: Final = 128
"""SQLite takes more parameters, but the compiled form of one statement should not fill a processor's cache."""

# The driver hands NULL and booleans through two look-ups each, which takes longer than the rest of a row. So they go as
# what they are not, and become NULL again in the statement.
_BOUND: Final[dict[Any, Any]] = {None: "", False: 0, True: 1}
_ROW: Final = "(" + ",".join(["NULLIF(?,'')"] * len(COLUMNS)) + ")"


class SqliteRows:
    """Writes each batch in one transaction, with one hand-over between threads and as few steps as possible.

    Python gives up and takes back the interpreter's lock at every step of SQLite, and a busy event loop wakes who
    waits for it at every turn. Through the engine, or with a step a row, that costs more than the inserts.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="request log")
        self._connection: sqlite3.Connection | None = None

    async def insert(self, batch: Batch) -> None:
        """Store all rows or none; raises `StorageError`, or what makes one of the rows impossible to store."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._insert, batch)

    def close(self) -> None:
        """Close the connection, after what is under way; the next batch opens it again."""
        self._thread.submit(self._disconnect)

    def _insert(self, batch: Batch) -> None:
        values = [_BOUND.get(value, value) for value in batch.parameters()]
        try:
            connection = self._connection
            if connection is None:
                connection = self._connection = self._database.open_sqlite()
            _insert_rows(connection, values)
        except (sqlite3.Error, OverflowError, ValueError) as error:
            self._disconnect()
            if isinstance(error, sqlite3.IntegrityError) or not isinstance(error, sqlite3.Error):
                raise
            raise in_words(error, self._database.url) from error

    def _disconnect(self) -> None:
        # This also takes back what was not committed; after a failure nothing about the connection is sure.
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _insert_rows(connection: sqlite3.Connection, values: list[Any]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    rows, done = len(values) // len(COLUMNS), 0
    while done < rows:
        count = min(_ROWS_A_STATEMENT, 1 << (rows - done).bit_length() - 1)
        connection.execute(_inserts[count], values[done * len(COLUMNS) : (done + count) * len(COLUMNS)])
        done += count
    connection.execute("COMMIT")


# Few sizes, powers of two, so that their compiled form is found again.
_inserts: Final = {
    count: f"INSERT INTO requests ({', '.join(COLUMNS)}) VALUES {','.join([_ROW] * count)} ON CONFLICT DO NOTHING"  # noqa: S608 - no value of anybody's is in it
    for count in (1 << power for power in range(_ROWS_A_STATEMENT.bit_length()))
}
