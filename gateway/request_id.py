"""Request ids: the client's own where it is harmless, else one of ours."""

from __future__ import annotations

import itertools
import re
import secrets
from collections.abc import Iterable

# Unique over processes by the prefix, within one by the counter: a random number a request costs ten times as much.
_prefix = f"req_{secrets.token_hex(6)}_"
_counter = itertools.count(1)

_SAFE = re.compile(rb"[A-Za-z0-9._:/+=@-]{1,128}")


def new_request_id() -> str:
    return _prefix + str(next(_counter))


def is_ours(request_id: str) -> bool:
    """Whether this process made *request_id*, so that nothing of a client's can stand in it."""
    return request_id.startswith(_prefix) and request_id[len(_prefix) :].isdecimal()


def safe_request_id(value: bytes) -> str | None:
    """A client's request id, if it is at most 128 safe characters."""
    return value.decode("ascii") if _SAFE.fullmatch(value) else None


def request_id_of(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """The value of ``x-request-id`` if it is at most 128 safe characters, else a new id. Names are in lower case."""
    for name, value in headers:
        if name == b"x-request-id":
            return safe_request_id(value) or new_request_id()
    return new_request_id()
