"""The request log: rows gathered in memory and written in batches."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections import deque
from typing import Final

from gateway.storage.database import Database
from gateway.storage.errors import RejectedError, StorageError
from gateway.storage.postgres_rows import PostgresRows
from gateway.storage.request_row import Batch, RequestRow
from gateway.storage.sqlite_rows import SqliteRows

_RETRY_SECONDS: Final = 1.0

# What inserting a row that cannot be stored ends with; drivers let some of Python's own errors through.
_UNUSABLE: Final = (RejectedError, sqlite3.IntegrityError, TypeError, ValueError, OverflowError)

_log = logging.getLogger(__name__)


class RequestLog:
    """Takes rows at once and writes them within a second, or sooner when many have gathered.

    While the database is away rows wait, the oldest giving way once *capacity* is reached; `dropped` counts those.
    Each row is written at most once, even when the answer to a commit was lost; one that cannot be stored at all is
    dropped alone.
    """

    def __init__(
        self,
        database: Database,
        *,
        flush_every_seconds: float = 1.0,
        batch_rows: int = 512,
        capacity: int = 50_000,
    ) -> None:
        self._flush_every_seconds = flush_every_seconds
        self._batch_rows = batch_rows
        self._capacity = capacity
        self._rows: deque[RequestRow] = deque()
        self._retry = Batch(())
        self._writer = SqliteRows(database) if database.is_sqlite else PostgresRows(database)
        self._full = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()
        self._failing = False
        self.dropped = 0
        self.written = 0

    @property
    def pending(self) -> int:
        """Rows that are not in the database yet."""
        return len(self._rows) + len(self._retry.rows)

    def add(self, *added: RequestRow) -> None:
        """Log requests."""
        rows = self._rows
        rows.extend(added)
        if len(rows) >= self._batch_rows:
            self._full.set()
            while len(rows) > self._capacity:
                rows.popleft()
                self.dropped += 1

    def start(self) -> None:
        """Begin to write in the background."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="request log")

    async def flush(self) -> None:
        """Write all rows that are there now; `StorageError` when the database does not take them."""
        async with self._lock:
            while self.pending:
                await self._write_batch()

    async def aclose(self, timeout_seconds: float = 5.0) -> None:
        """Stop, and write what is left if the database takes it in time; what it does not take is lost, and logged."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None
        try:
            async with asyncio.timeout(timeout_seconds):
                await self.flush()
        except (StorageError, TimeoutError) as error:
            _log.error("%d request log rows could not be written: %s", self.pending, error or "no time left")
        self._writer.close()

    async def _run(self) -> None:
        while True:
            try:
                async with asyncio.timeout(self._flush_every_seconds):
                    await self._full.wait()
            except TimeoutError:
                pass
            self._full.clear()
            try:
                await self.flush()
                if self._failing:
                    _log.warning("the request log is written again")
                    self._failing = False
            except StorageError as error:
                if not self._failing:
                    _log.warning("the request log cannot be written, rows are kept: %s", error)
                    self._failing = True
                await asyncio.sleep(_RETRY_SECONDS)
            except Exception:  # noqa: BLE001 - the loop must outlive a bug in one round
                _log.exception("the request log met a bug; the batch is dropped")
                self.dropped += len(self._retry.rows)
                self._retry = Batch(())

    async def _write_batch(self) -> None:
        # The batch stays in `_retry` until it is known to be stored.
        if not self._retry.rows:
            waiting = self._rows
            self._retry = Batch([waiting.popleft() for _ in range(min(len(waiting), self._batch_rows))])
        try:
            await self._insert(self._retry)
        except _UNUSABLE:
            # One row that the database does not take must neither cost the others nor block them for ever.
            for row in self._retry.rows:
                try:
                    await self._insert(Batch((row,)))
                except _UNUSABLE as error:
                    self._drop(error)
        self._retry = Batch(())

    async def _insert(self, batch: Batch) -> None:
        await self._writer.insert(batch)
        self.written += len(batch.rows)

    def _drop(self, error: Exception) -> None:
        self.dropped += 1
        _log.error("a request log row is dropped, since it cannot be stored: %s", type(error).__name__)
