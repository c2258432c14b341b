"""Batches of the request log into PostgreSQL: one statement a batch, with an array for each column."""

from __future__ import annotations

from typing import Final

from gateway.storage.database import Database
from gateway.storage.request_row import COLUMNS, Batch

TYPES: Final = {
    **dict.fromkeys(COLUMNS, "text"),
    **dict.fromkeys(("started_at_ms", "cost_nusd"), "bigint"),
    **dict.fromkeys(("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens"), "bigint"),
    **dict.fromkeys(("ttft_ms", "total_ms", "overhead_ms"), "double precision"),
    **dict.fromkeys(("stream", "estimated"), "boolean"),
    **dict.fromkeys(("attempts", "tags"), "jsonb"),
    "status": "integer",
}
"""The type of each column in PostgreSQL, as `tables.requests` has it."""

_ARRAYS: Final = ", ".join(f"${place}::{TYPES[name]}[]" for place, name in enumerate(COLUMNS, 1))
_INSERT: Final = f"INSERT INTO requests ({', '.join(COLUMNS)}) SELECT * FROM unnest({_ARRAYS}) ON CONFLICT DO NOTHING"  # noqa: S608 - no value of anybody's is in it


class PostgresRows:
    """Writes each batch in one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def insert(self, batch: Batch) -> None:
        """Store all rows or none; raises `StorageError`, or what makes one of the rows impossible to store."""
        values = batch.parameters()
        await self._database.fetch(_INSERT, *(values[column :: len(COLUMNS)] for column in range(len(COLUMNS))))

    def close(self) -> None:
        """The connections are the database's."""
