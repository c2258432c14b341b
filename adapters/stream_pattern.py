"""A stretch of a stream whose events differ in nothing but their text: known, and told, without being decoded.

A JSON document means the same whatever text stands in one of its strings. So when one event has been looked at, and
what was made of it, the next of the same stretch is known by its bytes, and what is told of it is joined from bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Final

import msgspec

from adapters.stream import StreamEvent

# As Python's own strings, they have to be sound: no half of a pair, no control character, nothing but UTF-8.
_decode_text = msgspec.json.Decoder(str).decode
# Where no quote and no letter is hidden, a member's name can neither be part of a text nor be written otherwise.
_HIDING: Final = (b'\\"', b"\\u")
# OpenAI ends each event with letters that are there to hide its length, unless asked not to (API reference, page The
# chat completion chunk object, 2026-11-30).
_PADDING: Final = re.compile(rb'(.*"obfuscation"\s*:\s*")[^"]*("\}\n\n)', re.DOTALL)


class Slot(msgspec.Struct, frozen=True):
    """Where the text of an event stands, by the names of the members that hold it, and of the one that tells it.

    *watch* looks at each further text before it is told; it says False, and nothing has happened, where the event that
    holds the text has to be looked at as a whole.
    """

    names: tuple[str, ...]
    """Two where the event says its text twice."""
    told_as: str
    watch: Callable[[str], bool] | None = None


CONTENT: Final = Slot(("content",), "content")
TEXT: Final = Slot(("text",), "text")


class Pattern:
    """What the events of a stretch have in common, and what is told in their place, bytes for bytes."""

    __slots__ = (
        "_after", "_around_bytes", "_before", "_between", "_head", "_other_bytes", "_plain", "_tail", "_text",
        "_to_padding", "_watch", "left", "text_bytes",
    )  # fmt: skip

    def __init__(
        self,
        parts: tuple[bytes, ...],
        told: tuple[bytes, ...],
        other_bytes: int = 0,
        watch: Callable[[str], bool] | None = None,
    ) -> None:
        """*parts* stand around the text in what comes, and between where it is said twice; *told* around it in what is
        told. *other_bytes* count as text besides."""
        self._before, self._watch = parts[0], watch
        padded = _PADDING.fullmatch(parts[-1]) if told == parts and parts[-1].find(b'"obfuscation"') >= 0 else None
        self._to_padding, self._after = padded.groups() if padded is not None else (b"", parts[-1])
        self._between = parts[1] if len(parts) > 2 else b""
        self._around_bytes = len(self._before) + len(self._after)
        self._plain = not self._to_padding and not self._between
        self._head, self._tail = told if told != parts else (b"", b"")
        # With the quotes, which are the last and the first of what stands around.
        self._text = slice(len(parts[0]) - 1, 1 - len(parts[-1]))
        self._other_bytes = other_bytes - 2
        self.text_bytes = 0
        """Those of the events that were told; whoever counts them sets it back."""
        self.left: float = float("inf")
        """How many events may still be told."""

    def told(self, raw: bytes) -> bytes | None:
        """What the client gets for *raw*; None for an event that is not of this stretch, or has to be looked at."""
        # Taking both ends off takes three fifths of the time of asking for them.
        if len(raw) - len(raw.removeprefix(self._before).removesuffix(self._after)) != self._around_bytes:
            return None
        quoted = raw[self._text] if self._plain else self._find(raw)
        try:
            text = _decode_text(quoted)
        except msgspec.DecodeError:
            return None
        left = self.left - 1
        if not text or left < 0 or (self._watch is not None and not self._watch(text)):
            return None
        self.left = left
        self.text_bytes += len(quoted) + self._other_bytes
        return self._head + quoted[1:-1] + self._tail if self._head else raw

    def _find(self, raw: bytes) -> bytes:
        """The text in *raw*, in its quotes, where more than that may differ; empty if there is none."""
        if self._to_padding:
            stop = raw.find(self._to_padding, self._text.start + 1)
            if stop < 0 or not raw[stop + len(self._to_padding) : -len(self._after)].isalnum():
                return b""
            return raw[self._text.start : stop + 1]
        both = raw[self._text]
        once = both[: (len(both) - len(self._between)) // 2 + 1]
        return once if both == once[:-1] + self._between + once[1:] else b""


def find_pattern(event: StreamEvent, told: bytes, slot: Slot) -> Pattern | None:
    """The pattern of an event that was *told* as another one, or as itself; None where it cannot be relied on."""
    raw = event.raw
    if told is raw and event.plain:
        # Its text is known and has only to be found, as nearly always in the first place where it stands.
        before, quoted, after = raw.partition(event.content)
        name = b'"%b"' % slot.told_as.encode()
        if before.rstrip(b" ").endswith(name + b":") and raw.count(name) == 1 and 92 not in before + after:
            parts = before + b'"', b'"' + after
            return Pattern(parts, parts, event.text_bytes - len(quoted) + 2, slot.watch)
    found = _apart(raw, slot.names)
    made = _apart(told, (slot.told_as,))
    if found is None or made is None or found[1] != made[1]:
        return None
    text_bytes = (len(raw) - sum(map(len, found[0]))) // len(slot.names)
    return Pattern(found[0], made[0], event.text_bytes - text_bytes, slot.watch)


def _apart(raw: bytes, names: tuple[str, ...]) -> tuple[tuple[bytes, ...], str] | None:
    """The text that the members *names* hold, all of them the same, and what stands around it."""
    spans, texts = [], set()
    for name in names:
        found = _member(name).search(raw)
        if found is None or raw.count(b'"%b"' % name.encode()) != 1:
            return None
        spans.append(found.span(1))
        texts.add(found[1])
    if len(texts) > 1:
        return None
    edges = [0, *(place for start, end in sorted(spans) for place in (start + 1, end - 1)), len(raw)]
    parts = tuple(raw[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True))
    if any(escape in part for escape in _HIDING for part in parts):
        return None
    return parts, _decode_text(texts.pop())


@cache
def _member(name: str) -> re.Pattern[bytes]:
    return re.compile(rb'"%b"\s*:\s*("[^"\\]*(?:\\.[^"\\]*)*")' % re.escape(name.encode()))
