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


class RequestRow(msgspec.Struct, array_like=True, gc=False):
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

encode_row: Final = msgspec.json.Encoder().encode
"""A row as it waits: bytes take a quarter of the memory, and the garbage collector does not walk through them."""

# Not typed further: a column that does not take a value says so for that row alone.
_decode_row: Final = msgspec.json.Decoder(
    tuple[(Any,) * (len(COLUMNS) - 3) + (msgspec.Raw, msgspec.Raw)]  # type: ignore[misc]  # made, not written out
).decode


class Batch:
    """Rows as `encode_row` made them, stored together. The ids they get stay the same however often that is tried."""

    __slots__ = ("_number", "rows")

    def __init__(self, rows: Sequence[bytes]) -> None:
        self.rows = rows
        self._number = next(_batches)

    def parameters(self) -> list[Any]:
        """The values of `COLUMNS` for all rows, one row after the other.

        One flat list, since hundreds of tuples at once would call the garbage collector in the middle of the work.
        """
        mark = f"{_mark}{self._number:06x}"
        flat: list[Any] = []
        for place, encoded in enumerate(self.rows):
            row = _decode_row(encoded)
            # Ids sort by the time of the request, which keeps the index dense and pages of the log cheap.
            flat.append(f"{row[1]:012x}{mark}{place:04x}")
            flat += row
            tags = bytes(flat[-1])
            flat[-2:] = bytes(flat[-2]).decode(), None if tags == b"null" else tags.decode()
        return flat
