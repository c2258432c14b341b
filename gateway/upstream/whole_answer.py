"""Answers that come whole in one read, as nearly all plain ones do: read at one look, without a parser."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from adapters.errors import ProviderError
from adapters.types import FailureKind
from gateway.upstream.base import BodySink

_LARGEST: Final = 16 * 1024
"""Bytes of a head; what is larger, or in any way unusual, is the parser's business."""
_MOST_HEADERS: Final = 100
_HEAD: Final = re.compile(
    rb"HTTP/1\.1 ([2-5][0-9]{2}) [\t\x20-\x7e\x80-\xff]*\r\n"
    rb"(?:[-!#$%&'*+.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*\r\n)+\r\n"
)
_WITHOUT_BODY: Final = frozenset((b"204", b"304"))
_LENGTH: Final = b"\r\ncontent-length:"
_UNUSUAL: Final = re.compile(rb"\r\n(?:transfer-encoding|content-encoding|connection):")


def whole_answer(data: bytes) -> WholeAnswer | None:
    """The answer that *data* is, from its first byte to its last; None for what is none, or none of the usual kind."""
    found = _HEAD.match(data, 0, _LARGEST)
    if found is None:
        return None
    end = found.end()
    head = data[: end - 2].lower()
    at = head.find(_LENGTH)
    if at < 0 or head.find(_LENGTH, at + 1) >= 0 or _UNUSUAL.search(head):
        return None
    digits = head[at + len(_LENGTH) : head.find(b"\r", at + 2)].strip(b" \t")
    if not digits.isdigit() or len(digits) > 12 or int(digits) != len(data) - end:
        return None
    status = found[1]
    if status in _WITHOUT_BODY or head.count(b"\n") > _MOST_HEADERS:
        return None
    return WholeAnswer(int(status), HeadLines(data[: end - 2], head), data[end:])


class HeadLines(Mapping[str, str]):
    """The headers of an answer; taken apart when more than one of them is asked for by name."""

    __slots__ = ("_fields", "_head", "_lower")

    def __init__(self, head: bytes, lower: bytes) -> None:
        """*head* is everything up to the blank line, *lower* the same in lower case."""
        self._head = head
        self._lower = lower
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
    headers: Mapping[str, str]
    _body: bytes
    _closed: bool = False

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
