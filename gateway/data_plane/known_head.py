"""A request's head that has come before on the same connection."""

from __future__ import annotations

import re
from typing import Final

from gateway.data_plane.exchange import ClientHead, Handler
from gateway.same_head import SameHead

_LARGEST: Final = 4096
"""Bytes; a larger head is parsed each time, since every connection remembers one."""
_LENGTH: Final = re.compile(rb"\r\ncontent-length: ?([0-9]{1,12})(?=\r\n)", re.IGNORECASE)
_END: Final = b"\r\n\r\n"


class KnownHead(SameHead):
    """The head of a request, and what was read from it."""

    head: ClientHead
    handler: Handler


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
    length = lengths[0]
    return KnownHead(raw[: length.start(1)], raw[length.end() :], len(length[1]), head, handler)
