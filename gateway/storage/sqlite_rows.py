"""Batches of the request log into a SQLite file, over a connection and in a thread of their own."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from gateway.storage.database import Database
from gateway.storage.failures import in_words
from gateway.storage.request_row import COLUMNS, Batch, as_json, fields

_ROWS_A_STATEMENT: Final = 128
"""SQLite takes more parameters, but the compiled form of one statement should not fill a processor's cache."""

# The driver hands NULL and booleans through two look-ups each, which takes longer than the rest of a row. So they go as
# what they are not, and become NULL again in the statement.
_BOUND: Final[dict[Any, Any]] = {None: "", False: 0, True: 1}
_NULLABLE: Final = "NULLIF(?,'')"
_TRUTH: Final = {False: 0, True: 1}

# What most rows of a batch have in common: whose they are, what was asked and who answered; and what is rarely there.
_ALIKE: Final = (*COLUMNS[COLUMNS.index("key_id") : COLUMNS.index("prompt_tokens")], "adjusted", "client_ip")
# What each row has of its own, and how it stands in a statement. What no row leaves out is bound as it is, so that one
# with a hole there is refused.
_NEVER_NULL: Final = ("id", "request_id", "started_at_ms", "estimated", "total_ms", "attempts")
_OWN: Final = {name: "?" if name in _NEVER_NULL else _NULLABLE for name in COLUMNS if name not in _ALIKE}

_FEWEST_ALIKE: Final = 16
"""Rows with as much in common that get a statement of their own."""


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
        try:
            connection = self._connection
            if connection is None:
                connection = self._connection = self._database.open_sqlite()
            _insert_rows(connection, batch)
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


def _insert_rows(connection: sqlite3.Connection, batch: Batch) -> None:
    """Insert the rows of *batch*; what many of them have in common is bound once for all of them."""
    gathered = _gathered(batch)
    connection.execute("BEGIN IMMEDIATE")
    rest: list[Any] = []
    width = len(_OWN)
    for common, own in gathered.items():
        done = 0
        for count in _portions(len(own) // width, _FEWEST_ALIKE):
            connection.execute(_inserts_alike[count], (*common, *own[done * width : (done + count) * width]))
            done += count
        for start in range(done * width, len(own), width):
            rest += [_BOUND.get(value, value) for value in common]
            rest += own[start : start + width]
    done = 0
    for count in _portions(len(rest) // len(COLUMNS), 1):
        connection.execute(_inserts[count], rest[done * len(COLUMNS) : (done + count) * len(COLUMNS)])
        done += count
    connection.execute("COMMIT")


def _gathered(batch: Batch) -> dict[tuple[Any, ...], list[Any]]:
    """The values of `_OWN` for one row after the other, as they are bound, by the values of `_ALIKE`."""
    gathered: dict[tuple[Any, ...], list[Any]] = {}
    # By names, which stay in the frame: slices and a look at each value took as long as SQLite does.
    for id_, row in zip(batch.ids(), batch.rows, strict=True):
        (
            request_id,
            started_at_ms,
            key_id,
            organisation_id,
            team_id,
            user_id,
            endpoint,
            model,
            provider,
            target,
            status,
            error_code,
            stream,
            prompt_tokens,
            completion_tokens,
            cached_tokens,
            reasoning_tokens,
            estimated,
            cost_nusd,
            ttft_ms,
            total_ms,
            overhead_ms,
            adjusted,
            client_ip,
            attempts,
            tags,
        ) = fields(row)
        common = (
            key_id,
            organisation_id,
            team_id,
            user_id,
            endpoint,
            model,
            provider,
            target,
            status,
            error_code,
            stream,
            adjusted,
            client_ip,
        )
        own = gathered.get(common)
        if own is None:
            own = gathered[common] = []
        own += (
            id_,
            request_id,
            started_at_ms,
            "" if prompt_tokens is None else prompt_tokens,
            "" if completion_tokens is None else completion_tokens,
            "" if cached_tokens is None else cached_tokens,
            "" if reasoning_tokens is None else reasoning_tokens,
            _TRUTH.get(estimated),
            "" if cost_nusd is None else cost_nusd,
            "" if ttft_ms is None else ttft_ms,
            total_ms,
            "" if overhead_ms is None else overhead_ms,
            as_json(attempts),
            "" if tags is None else as_json(tags),
        )
    return gathered


def _portions(rows: int, least: int) -> Iterator[int]:
    """How many of *rows* to insert by each statement: powers of two, from *least* on; fewer than that are left over."""
    while rows >= least:
        count = min(_ROWS_A_STATEMENT, 1 << rows.bit_length() - 1)
        yield count
        rows -= count


def _statement(given: Iterable[str], count: int) -> str:
    """*given* is what stands for the columns that most rows have in common."""
    row = f"({','.join([*given, *_OWN.values()])})"
    return (
        f"INSERT INTO requests ({', '.join((*_ALIKE, *_OWN))}) VALUES {','.join([row] * count)} ON CONFLICT DO NOTHING"  # noqa: S608 - no value of anybody's is in it
    )


# Few sizes, so that their compiled form is found again.
_sizes: Final = tuple(_portions(2 * _ROWS_A_STATEMENT - 1, 1))
_inserts: Final = {count: _statement([_NULLABLE] * len(_ALIKE), count) for count in _sizes}
# A parameter with a number is the same in each row.
_inserts_alike: Final = {
    count: _statement([f"?{number}" for number in range(1, len(_ALIKE) + 1)], count)
    for count in _sizes
    if count >= _FEWEST_ALIKE
}
