"""The seam between a server and the data plane: one request, and the means to answer it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

import msgspec


class ClientHead(msgspec.Struct, eq=False):
    """The head of a request, as far as the data plane is concerned."""

    method: str
    path: str
    """Decoded path without the query string."""
    headers: Sequence[tuple[bytes, bytes]]
    """As received, names in lower case. The content-length may be that of an earlier request with the same head."""
    facts: Any = None
    """What its reader has made of it: requests on one connection may share a head, which is then read once."""


class Exchange(Protocol):
    """One request with its body read, and the answer to it.

    Whoever implements it reads the body within the limits, runs the handler in a task of its own and cancels
    that task when the client leaves. All sending is synchronous: bytes are written or buffered at once, and
    ``on_flow`` tells when to stop and go on. After the client has left, sending does nothing.

    Header blocks are bytes ready for the wire, each line ``name: value\\r\\n`` with a lower-case name, built from
    values that hold no control characters; framing headers (content-length, transfer-encoding, connection,
    date) belong to the implementation.
    """

    head: ClientHead
    body: bytes | bytearray
    task: asyncio.Task[None] | None
    """What runs the handler, as far as that is known."""
    peer: str
    """The client's address for logs, or an empty string."""
    started: bool
    """True once a status has been sent."""
    paused: bool
    """True while the client reads more slowly than we write."""
    on_flow: Callable[[bool], None] | None
    """Called with True when writing should pause, with False when it may go on."""

    def respond(self, status: int, headers: bytes, body: bytes) -> None:
        """Send a whole answer."""

    def start(self, status: int, headers: bytes) -> None:
        """Begin an answer whose body comes in pieces."""

    def write(self, data: bytes) -> None:
        """Send one piece; never called with empty data."""

    def end(self) -> None:
        """Finish an answer that was started."""

    def abort(self) -> None:
        """Break off so that the client cannot mistake what it got for a whole answer."""


# What a server runs for each request. It must answer: an exception that escapes it is a bug, logged and answered 500.
Handler = Callable[[Exchange], Coroutine[Any, Any, None]]


class Plane(Protocol):
    """What a server asks of the data plane."""

    @property
    def draining(self) -> bool:
        """True: every answer closes its connection."""

    def match(self, method: bytes, path: str) -> Handler | None:
        """The handler of a route of the data plane. *path* is decoded, without query, and never normalised."""
