"""Splits a byte stream into server-sent events, and keeps each event's own bytes so that it can go on unchanged."""

from __future__ import annotations

import msgspec

from adapters.errors import ProviderError
from adapters.types import FailureKind

MAX_EVENT_BYTES = 1024 * 1024
MAX_MEDIA_BYTES = 4 * MAX_EVENT_BYTES
"""Of an event that brings pictures or sound (U15)."""

_MEDIA = (b'"images"', b'"image_url"', b'"audio"', b"data:image/", b"data:audio/")
# Where in an event it shows what it brings: the names stand before what is large.
_SHOWN = 4096

_BOM = b"\xef\xbb\xbf"


class SseEvent(msgspec.Struct, frozen=True, gc=False):
    """One event, or a comment block."""

    raw: bytes
    """What came, with the blank line that ends it."""
    data: bytes | None
    """The payload, lines joined with ``\\n``; None without a data field, as in a comment."""
    name: str | None = None
    """The event field, if one was sent."""
    complete: bool = True
    """False for what was left when the stream ended before the blank line."""


class SseSplitter:
    """Takes the bytes as they come and gives events; however the bytes are split, the events are the same.

    Lines end with CR, LF or CRLF, and nothing else. The ``raw`` of all events together is the input, but for a byte
    order mark at its start. A blank line that ends in CR is held until the next byte shows whether an LF belongs
    to it. An event over the limit raises `ProviderError` TOO_LARGE, after those before it have been given.
    """

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max = max_event_bytes
        self._buffer = bytearray()  # begins where the current event begins
        self._line = 0  # where in it the current line begins
        self._scanned = 0  # up to where no line end is left to find
        self._data: list[bytes] = []
        self._name: str | None = None
        self._at_start = True
        self.at_boundary = False
        """Nothing is held: the next byte begins an event, which can be taken as it is if it comes in one piece."""
        self._failure: ProviderError | None = None

    def feed(self, data: bytes) -> list[SseEvent]:
        """The events that *data* completes."""
        # Nearly every read is whole events of one data line each, and nearly always one. An integer is looked for with
        # a single memchr, which a one-byte string is not.
        if self.at_boundary and data[:6] == b"data: " and data[-1] == 10 and 13 not in data:
            size = len(data)
            if data.find(b"\n") == size - 2 and size <= self._max:
                return [SseEvent(data, data[6:-2])]
            events = self._whole_events(data)
            if events is not None:
                return events
        return self._feed_any(data)

    def close(self) -> SseEvent | None:
        """What is left at the end of the stream: by the specification to be dropped, but providers end like that."""
        self._raise_failure()
        buffer = self._buffer
        end = len(buffer)
        if not end:
            return None
        after_cr = buffer[-1] == 13
        complete = after_cr and self._line == end - 1
        if self._line < end and not complete:
            self._take_line(self._line, end - 1 if after_cr else end)
        event = self._take_event(0, end, complete)
        buffer.clear()
        self._line = self._scanned = 0
        return event

    def _whole_events(self, data: bytes) -> list[SseEvent] | None:
        """The events of a read that holds nothing but whole one-line events, else None."""
        if data[-2] != 10:
            return None
        events = []
        for part in data[:-2].split(b"\n\n"):
            if part[:6] != b"data: " or 10 in part or len(part) + 2 > self._max:
                return None
            events.append(SseEvent(part + b"\n\n", part[6:]))
        return events

    def _feed_any(self, data: bytes) -> list[SseEvent]:
        self._raise_failure()
        buffer = self._buffer
        if self._at_start and data.startswith(b"data: "):
            # No mark before the first event, as nearly always: what comes may be whole events already.
            self._at_start, self.at_boundary = False, not buffer
            if self.at_boundary:
                return self.feed(data)
        buffer += data
        if self._at_start:
            if len(buffer) < len(_BOM) and _BOM.startswith(buffer):
                return []
            self._at_start = False
            if buffer.startswith(_BOM):
                del buffer[: len(_BOM)]
        events: list[SseEvent] = []
        start, line, position, end = 0, self._line, self._scanned, len(buffer)
        # The next LF and the next CR are both remembered: looking for either again at each line would read a buffer
        # that holds only one sort of them over and over.
        lf = cr = -1
        while True:
            if lf < position:
                lf = _find(buffer, b"\n", position, end)
            if cr < position:
                cr = _find(buffer, b"\r", position, end)
            stop = min(lf, cr)
            if stop == end or stop == cr == end - 1:
                break  # no line end, or a CR that may be the first half of one
            after = stop + 2 if stop == cr == lf - 1 else stop + 1
            if stop > line:
                self._take_line(line, stop)
            elif after - start > self._max and not self._may_be_larger(start, after):
                break
            else:
                events.append(self._take_event(start, after, complete=True))
                start = after
            line = position = after
        del buffer[:start]
        self._line, self._scanned = line - start, stop - start
        self.at_boundary = not buffer
        if len(buffer) > self._max and not self._may_be_larger(0, len(buffer)):
            self._fail()
            if not events:
                self._raise_failure()
        return events

    def _may_be_larger(self, start: int, end: int) -> bool:
        """Whether the event there may be larger than others, for what it brings."""
        if self._max != MAX_EVENT_BYTES or end - start > MAX_MEDIA_BYTES:
            return False
        shown = self._buffer[start : min(end, start + _SHOWN)]
        return any(name in shown for name in _MEDIA)

    def _take_line(self, start: int, end: int) -> None:
        buffer = self._buffer
        colon = buffer.find(b":", start, end)
        if colon < 0:
            colon = value = end
        else:
            value = colon + 2 if buffer.startswith(b" ", colon + 1, end) else colon + 1
        if colon - start == 4 and buffer.startswith(b"data", start):
            self._data.append(bytes(buffer[value:end]))
        elif colon - start == 5 and buffer.startswith(b"event", start):
            self._name = buffer[value:end].decode("utf-8", "replace")

    def _take_event(self, start: int, end: int, complete: bool) -> SseEvent:
        lines, name = self._data, self._name or None
        self._data, self._name = [], None
        data = lines[0] if len(lines) == 1 else b"\n".join(lines) if lines else None
        return SseEvent(bytes(self._buffer[start:end]), data, name, complete)

    def _fail(self) -> None:
        self._failure = ProviderError(
            FailureKind.TOO_LARGE, f"an event of the upstream's stream is larger than {self._max} bytes"
        )
        self._buffer.clear()
        self._data.clear()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure


def _find(buffer: bytearray, byte: bytes, start: int, end: int) -> int:
    """Where *byte* is, or *end*."""
    found = buffer.find(byte, start, end)
    return end if found < 0 else found
