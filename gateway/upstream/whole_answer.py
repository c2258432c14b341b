"""Answers that come whole in one read, as nearly all plain ones do: read at one look, without a parser."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from adapters.errors import ProviderError
from adapters.types import FailureKind
from gateway.same_head import SameHead
from gateway.upstream.base import BodySink

_LARGEST: Final = 16 * 1024
"""Bytes of a head; what is larger, or in any way unusual, is the parser's business."""
_LARGEST_KNOWN: Final = 4096
"""A larger one is not kept to be known again."""
_MOST_MISSES: Final = 16
"""Heads in a row, each other than the one before, after which none is kept for a while."""
_UNUSUAL: Final = (b"transfer-encoding", b"content-encoding", b"connection")
_WITHOUT_BODY: Final = frozenset((b"204", b"304"))


def _in_any_case(name: bytes) -> bytes:
    letters = ((char.lower(), char.upper()) for char in name.decode("ascii"))
    return "".join(f"[{lower}{upper}]" if lower != upper else lower for lower, upper in letters).encode("ascii")


_LENGTH: Final = _in_any_case(b"content-length")
_TEXT: Final = rb"[\t\x20-\x7e\x80-\xff]*"
_LINE: Final = rb"(?!(?:%b):)[-!#$%%&'*+.^_`|~0-9A-Za-z]+:%b\r\n" % (
    b"|".join([_LENGTH, *map(_in_any_case, _UNUSUAL)]),
    _TEXT,
)
_HEAD: Final = re.compile(
    rb"HTTP/1\.1 ([2-5][0-9]{2}) %b\r\n(?:%b){0,50}%b:[ \t]*([0-9]{1,12})[ \t]*\r\n(?:%b){0,50}\r\n"
    % (_TEXT, _LINE, _LENGTH, _LINE)
)


class KnownAnswer(SameHead):
    """The head of the answer that came last."""

    status: int


class AnswerReader:
    """Reads the whole answers of one origin, whose heads may be the same time after time."""

    __slots__ = ("_known", "_misses")

    def __init__(self) -> None:
        self._known: KnownAnswer | None = None
        self._misses = 0

    def read(self, data: bytes) -> WholeAnswer | None:
        """The answer that *data* is, from its first byte to its last; None for one of an unusual kind, or none."""
        known = self._known
        if known is not None:
            body = known.body_in(data)
            if body is not None:
                self._misses = 0
                return WholeAnswer(known.status, body, data)
        found = _HEAD.match(data, 0, _LARGEST)
        if found is None:
            return None
        status, length = found.groups()
        end = found.end()
        if int(length) != len(data) - end or status in _WITHOUT_BODY:
            return None
        if self._misses < _MOST_MISSES and end <= _LARGEST_KNOWN:
            self._misses += 1
            self._known = KnownAnswer(data[: found.start(2)], data[found.end(2) : end], len(length), int(status))
        else:
            self._known = None
        return WholeAnswer(int(status), data[end:], data)

    def try_again(self) -> None:
        """Heads that differed each time may be the same from now on: many tell the second they were written in."""
        self._misses = 0


class HeadLines(Mapping[str, str]):
    """The headers of an answer; taken apart when more than one of them is asked for by name."""

    __slots__ = ("_fields", "_head", "_lower")

    def __init__(self, head: bytes) -> None:
        """*head* is everything up to the blank line."""
        self._head = head
        self._lower = head.lower()
        self._fields: dict[str, str] | None = None

    def get(self, name: str, default: str | None = None) -> str | None:  # type: ignore[override]  # no other default
        if self._fields is None:
            wanted = b"\r\n%b:" % name.encode("latin-1")
            at = self._lower.find(wanted)
            if at < 0:
                return default
            at += len(wanted)
            if self._lower.find(wanted, at) < 0:
                return self._head[at : self._head.find(b"\r", at)].strip(b" \t").decode("latin-1")
        return self._all().get(name, default)

    def __getitem__(self, name: str) -> str:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def _all(self) -> dict[str, str]:
        fields = self._fields
        if fields is None:
            fields = self._fields = {}
            for line in self._head.split(b"\r\n")[1:-1]:
                name, _, value = line.partition(b":")
                key, text = name.decode("latin-1").lower(), value.strip(b" \t").decode("latin-1")
                fields[key] = f"{fields[key]}, {text}" if key in fields else text
        return fields


class WholeAnswer(msgspec.Struct, eq=False):
    """Implements `UpstreamResponse`, with nothing left to wait for and nothing to give back."""

    status: int
    _body: bytes
    _data: bytes
    """With the head, of which nobody wants to know as a rule."""
    _closed: bool = False

    @property
    def headers(self) -> Mapping[str, str]:
        return HeadLines(self._data[: len(self._data) - len(self._body) - 2])

    async def read(self, limit_bytes: int) -> bytes:
        if len(self._body) > limit_bytes:
            message = f"the upstream's answer is larger than {limit_bytes} bytes"
            raise ProviderError(FailureKind.TOO_LARGE, message)
        return self._body

    def stream(self, sink: BodySink) -> None:
        if self._body:
            sink.feed(self._body)
        if not self._closed:  # the sink may have had enough
            sink.finish(None)

    def pause(self) -> None:
        """Nothing is in flight."""

    def resume(self) -> None:
        """Nothing is in flight."""

    def close(self) -> None:
        self._closed = True
