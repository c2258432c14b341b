"""A head that has come before on the same connection, known again by its bytes.

Clients that keep a connection send the same head with every request, but for the length of the body. What was parsed
and checked once needs no second look when the same bytes come again.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from gateway.data_plane.exchange import ClientHead, Handler

_LARGEST: Final = 4096
"""Bytes; a larger head is parsed each time, since every connection remembers one."""
_MOST_DIGITS: Final = 12
_LENGTH: Final = re.compile(rb"\r\ncontent-length: ?([0-9]{1,%d})(?=\r\n)" % _MOST_DIGITS, re.IGNORECASE)
_END: Final = b"\r\n\r\n"


class KnownHead(msgspec.Struct, eq=False):
    """A head, split where the length of the body stands."""

    before: bytes
    after: bytes
    """From the end of the length to the blank line."""
    head: ClientHead
    handler: Handler

    def body_in(self, data: bytes) -> bytes | None:
        """The body of a request with this head that *data* holds, whole and nothing else; None if it does not."""
        before, after = self.before, self.after
        if not data.startswith(before):
            return None
        start = len(before)
        end = data.find(b"\r", start, start + _MOST_DIGITS + 1)
        if end < 0 or not data.startswith(after, end):
            return None
        digits = data[start:end]
        body = end + len(after)
        return data[body:] if digits.isdigit() and int(digits) == len(data) - body else None


def known_head(data: bytes, head: ClientHead, handler: Handler) -> KnownHead | None:
    """What *head*, parsed from the beginning of *data*, can be known again by; None where that is not worth it.

    Whoever calls this has found the head in order, with a content-length and nothing else that says how the body comes.
    """
    end = data.find(_END, 0, _LARGEST)
    if end < 0:
        return None
    raw = data[: end + len(_END)]
    lengths = list(_LENGTH.finditer(raw))
    # A line for the target, one for each header, and the blank one: else it was not this that the parser read.
    if len(lengths) != 1 or raw.count(b"\n") != len(head.headers) + 2:
        return None
    return KnownHead(raw[: lengths[0].start(1)], raw[lengths[0].end() :], head, handler)
