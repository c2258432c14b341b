"""One request and its attempts as the request log keeps them, and their way into a database's parameters."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Sequence
from typing import Any, Final

import msgspec


class AttemptRow(msgspec.Struct, gc=False):
    """One attempt of a request, as it stands in the column ``attempts``."""

    target: str
    failure: str | None
    """The value of a `FailureKind`, or None for the attempt that answered."""
    status: int | None
    started_ms: float
    """Since the request's start."""
    duration_ms: float
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    estimated: bool = False
    cost_nusd: int | None = None
    adjusted: str | None = None
    """As in ``x-gateway-adjusted``."""


class RequestRow(msgspec.Struct, gc=False):
    """One request and its outcome; the fields are the columns of ``requests`` in their order, but for ``id``."""

    request_id: str
    started_at_ms: int
    """Milliseconds since 1970."""
    key_id: str | None
    organisation_id: str | None
    team_id: str | None
    user_id: str | None
    endpoint: str
    model: str | None
    provider: str | None
    target: str | None
    status: int
    error_code: str | None
    stream: bool
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    estimated: bool = False
    cost_nusd: int | None = None
    ttft_ms: float | None = None
    total_ms: float = 0.0
    overhead_ms: float | None = None
    adjusted: str | None = None
    client_ip: str | None = None
    attempts: Sequence[AttemptRow] = ()
    tags: Sequence[str] | None = None


COLUMNS: Final = ("id", *RequestRow.__struct_fields__)

# Ids are unique over processes by the mark, within one by the batch, within that by the place.
_mark: Final = secrets.token_hex(6)
_batches: Final = itertools.count()

_encode: Final = msgspec.json.Encoder().encode

fields: Final = msgspec.structs.astuple
"""The values of a row in the order of `COLUMNS`, but for the first."""


def as_json(value: Sequence[AttemptRow] | Sequence[str]) -> str:
    """What stands in the columns ``attempts`` and ``tags``."""
    return _encode(value).decode()


class Batch:
    """Rows that are stored together. The ids they get stay the same however often that is tried."""

    __slots__ = ("_number", "rows")

    def __init__(self, rows: Sequence[RequestRow]) -> None:
        self.rows = rows
        self._number = next(_batches)

    def ids(self) -> list[str]:
        """What is the column ``id`` of each row."""
        if not self.rows:
            return []
        # Ids sort by the time of the answer, which keeps the index dense and pages of the log cheap.
        mark = f"{self.rows[0].started_at_ms:012x}{_mark}{self._number:06x}"
        return [f"{mark}{place}" for place in range(10_000, 10_000 + len(self.rows))]

    def parameters(self) -> list[Any]:
        """The values of `COLUMNS` for all rows, one row after the other.

        One flat list, since hundreds of tuples at once would call the garbage collector in the middle of the work.
        """
        flat: list[Any] = []
        for id_, row in zip(self.ids(), self.rows, strict=True):
            flat.append(id_)
            flat += fields(row)
            flat[-2] = as_json(row.attempts)
            if row.tags is not None:
                flat[-1] = as_json(row.tags)
        return flat
