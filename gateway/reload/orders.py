"""What the parent of several workers and a worker say to each other about reloads, over the worker's own pipes.

Down its standard input go pickled orders, which the parent alone can write; up its standard output come lines of JSON.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import msgspec

from gateway.reload.outcome import Outcome
from gateway.settings import Settings

_LENGTH: Final = struct.Struct("!Q")


@dataclass(frozen=True, slots=True)
class Prepare:
    """Build what *settings* ask for, and say how it went; *variables* tell where the shared parts are."""

    number: int
    settings: Settings
    variables: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Commit:
    """Put in force what was prepared under *number*."""

    number: int


@dataclass(frozen=True, slots=True)
class Abandon:
    """Forget what was prepared under *number*."""

    number: int


@dataclass(frozen=True, slots=True)
class Tell:
    """What came of a reload; the answer to the worker's *question* if that is not 0, else the last one of all."""

    outcome: Outcome
    question: int = 0


Order: TypeAlias = Prepare | Commit | Abandon | Tell


class Prepared(msgspec.Struct, tag=True):
    """It is built."""

    number: int


class Refused(msgspec.Struct, tag=True):
    """It cannot be built; *message* holds no secret."""

    number: int
    message: str


class Committed(msgspec.Struct, tag=True):
    """It is in force."""

    number: int


class Over(msgspec.Struct, tag=True):
    """The last request that had another configuration has ended."""

    number: int


class Ask(msgspec.Struct, tag=True):
    """Reload, and tell the outcome under *question* if that is not 0."""

    question: int
    trigger: str
    dry_run: bool


Report: TypeAlias = Prepared | Refused | Committed | Over | Ask

_decode = msgspec.json.Decoder(Report).decode


def pack(order: Settings | Order) -> bytes:
    """The bytes of an order; the first one a worker gets is the settings to start by."""
    data = pickle.dumps(order)
    return _LENGTH.pack(len(data)) + data


class Unpacker:
    """Takes the bytes as they come and gives whole orders."""

    def __init__(self) -> None:
        self._data = b""

    def feed(self, data: bytes) -> Iterator[Settings | Order]:
        self._data += data
        while len(self._data) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._data)
            end = _LENGTH.size + length
            if len(self._data) < end:
                return
            order = pickle.loads(self._data[_LENGTH.size : end])  # noqa: S301 - written by our own parent
            self._data = self._data[end:]
            yield order


def to_line(report: Report) -> bytes:
    """A report as a worker writes it."""
    return msgspec.json.encode(report) + b"\n"


def from_line(line: bytes) -> Report:
    """What a worker wrote."""
    return _decode(line)
