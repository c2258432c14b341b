"""The only place that writes error bodies, and the headers that go with them, in the shape OpenAI clients read."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

import msgspec

from gateway.errors import GatewayError, InvalidConfigurationError

_encode = msgspec.json.Encoder().encode

# Statuses the common SDKs try again, where trying again cannot help.
_RETRIED_BY_CLIENTS = frozenset({408, 409, 429, *range(500, 600)})
_WORTH_RETRYING = frozenset({408, 429, 500, 502, 503, 504})

_NAME = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class HeaderValueError(ValueError):
    """A header that cannot go on the wire as it is; the value is not told, it may be a secret."""


def error_body(
    error: GatewayError, request_id: str, provider: str | None = None, upstream_status: int | None = None
) -> bytes:
    """The JSON body for *error*; *provider* and *upstream_status* are given when an upstream is at fault."""
    members: dict[str, object] = {
        "message": error.message,
        "type": error.type,
        "param": error.param,
        "code": error.code,
        "request_id": request_id,
    }
    if provider is not None:
        members["provider"] = provider
    if upstream_status is not None:
        members["upstream_status"] = upstream_status
    if isinstance(error, InvalidConfigurationError):
        members["problems"] = error.problems
    return _encode({"error": members})


def error_headers(
    error: GatewayError,
    request_id: str,
    *,
    retry_after_seconds: float | None = None,
    should_retry: bool | None = None,
) -> bytes:
    """The header block for *error*: ids, content type, when to come back and whether to.

    *should_retry* overrides what the status says, for instance after the gateway has already tried everything.
    """
    pairs = [
        ("content-type", "application/json"),
        ("x-request-id", request_id),
        ("request-id", request_id),
        *((name.lower(), value) for name, value in error.headers.items()),
    ]
    if retry_after_seconds is not None:
        pairs += retry_after(retry_after_seconds)
    if should_retry is None and error.status in _RETRIED_BY_CLIENTS and error.status not in _WORTH_RETRYING:
        should_retry = False
    if should_retry is not None:
        pairs.append(("x-should-retry", "true" if should_retry else "false"))
    return render_headers(pairs)


def retry_after(seconds: float) -> list[tuple[str, str]]:
    """The headers that say when to come back."""
    # Rounded up: a client that comes back too early is refused again. But not for what subtracting two times has left.
    milliseconds = max(1, math.ceil(round(seconds * 1000, 3)))
    return [("retry-after", str(-(-milliseconds // 1000))), ("retry-after-ms", str(milliseconds))]


def render_headers(pairs: Iterable[tuple[str, str]]) -> bytes:
    """A header block as `Exchange` wants it. Characters outside Latin-1 are replaced by ``?``.

    Raises `HeaderValueError` for a control character in a value, and for a name that is not lower case or no token.
    """
    lines = []
    for name, value in pairs:
        if not _NAME.fullmatch(name):
            raise HeaderValueError(f"{name!r} is no lower-case header name")
        if _CONTROL.search(value):
            raise HeaderValueError(f"the value of header {name!r} holds a control character")
        lines.append(f"{name}: {value}\r\n")
    return "".join(lines).encode("latin-1", "replace")
