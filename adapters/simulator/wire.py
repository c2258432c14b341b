"""What goes into a simulator and what comes out, whatever serves it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it came; header names in lower case, *path* without the query."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Wait:
    """Let so many seconds pass."""

    seconds: float


class Break(StrEnum):
    """How an answer ends where it should not."""

    CUT = "cut"  # the connection closes
    HANG = "hang"  # nothing more comes, until the client leaves


Step = bytes | Wait | Break


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: *steps* are made one by one, so that a stream costs nothing once its client has left.

    *delay* is waited for before the head is sent.
    """

    status: int
    steps: Iterator[Step]
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    length: int | None = None
    """The ``content-length``, where the body is whole."""


def one_piece(status: int, body: bytes, headers: Mapping[str, str], delay: float = 0.0) -> Answer:
    """A body in one piece."""
    return Answer(status, iter((body,)), {"content-type": "application/json", **headers}, delay, len(body))
