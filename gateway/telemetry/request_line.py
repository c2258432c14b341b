"""The `request` line of the log: what became of one request, written for many of them at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from gateway.request_id import is_ours
from gateway.telemetry.redact import client_string

if TYPE_CHECKING:
    from gateway.storage.request_row import RequestRow


class RequestLine(msgspec.Struct, omit_defaults=True, gc=False):
    """The line's members in their order; what is not known is left out."""

    timestamp: str
    level: str
    event: str
    request_id: str
    key_id: str | None = None
    endpoint: str | None = None
    model: str | None = None
    provider: str | None = None
    target: str | None = None
    attempts: int | None = None
    status: int | None = None
    error_code: str | None = None
    stream: bool | None = None
    ttft_ms: float | None = None
    total_ms: float | None = None
    overhead_ms: float | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    estimated: bool | None = None
    cost_usd: float | None = None
    adjusted: str | None = None


_encode_lines: Final = msgspec.json.Encoder().encode_lines

# The same few names come again and again.
_model_name: Final = lru_cache(1024)(client_string)


def json_lines(rows: Sequence[RequestRow], at: datetime) -> str:
    """The lines of *rows* as JSON, each with its newline. One that cannot be written costs none of the others."""
    try:
        return _encode_lines(list(_lines_of(rows, at))).decode()
    except (ArithmeticError, TypeError, ValueError) as error:
        if len(rows) > 1:
            return "".join(json_lines([row], at) for row in rows)
        return f'{{"level":"error","event":"a request line could not be made","error":"{type(error).__name__}"}}\n'


def console_lines(render: Callable[[Any, str, dict[str, Any]], str], rows: Sequence[RequestRow], at: datetime) -> str:
    """The lines of *rows* as *render*, a renderer of structlog's, has them."""
    events: Iterable[dict[str, Any]] = map(msgspec.structs.asdict, _lines_of(rows, at))
    said = ({name: value for name, value in event.items() if value is not None} for event in events)
    return "".join(render(None, "info", event) + "\n" for event in said)


def _lines_of(rows: Iterable[RequestRow], at: datetime) -> Iterator[RequestLine]:
    timestamp = at.isoformat().replace("+00:00", "Z")
    for row in rows:
        request_id, cost = row.request_id, row.cost_nusd
        yield RequestLine(
            timestamp,
            "info",
            "request",
            request_id if is_ours(request_id) else client_string(request_id),
            row.key_id,
            row.endpoint,
            None if row.model is None else _model_name(row.model),
            row.provider,
            row.target,
            len(row.attempts),
            row.status,
            row.error_code,
            row.stream,
            _rounded(row.ttft_ms),
            _rounded(row.total_ms),
            _rounded(row.overhead_ms),
            row.prompt_tokens,
            row.completion_tokens,
            row.estimated or None,
            None if cost is None else cost / 1e9,
            row.adjusted or None,
        )


def _rounded(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else round(milliseconds, 2)
