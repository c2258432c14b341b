"""What the event splitter makes of single streams, and that its work stays linear."""

from __future__ import annotations

import time

import pytest

from adapters.errors import ProviderError
from adapters.types import FailureKind
from gateway.upstream.sse import SseEvent, SseSplitter


def split(*reads: bytes) -> list[SseEvent]:
    splitter = SseSplitter()
    return [event for read in reads for event in splitter.feed(read)]


ONE_EVENT = {
    "plain": (b'data: {"a":1}\n\n', b'{"a":1}', None),
    "crlf": (b"data: a\r\n\r\n", b"a", None),
    "no space": (b"data:a\n\n", b"a", None),
    "only the first space goes": (b"data:  a \n\n", b" a ", None),
    "a tab stays": (b"data:\ta\n\n", b"\ta", None),
    "empty": (b"data: \n\n", b"", None),
    "empty, without space": (b"data:\n\n", b"", None),
    "empty, without colon": (b"data\n\n", b"", None),
    "two lines": (b"data: a\ndata: b\n\n", b"a\nb", None),
    "two empty lines": (b"data\ndata\n\n", b"\n", None),
    "mixed line ends": (b"data: a\rdata: b\r\ndata: c\n\r\n", b"a\nb\nc", None),
    "named": (b"event: message_start\ndata: a\n\n", b"a", "message_start"),
    "the last name counts": (b"event: x\nevent: y\ndata: a\n\n", b"a", "y"),
    "an empty name is none": (b"event:\ndata: a\n\n", b"a", None),
    "a name without data": (b"event: ping\n\n", None, "ping"),
    "id and retry": (b"id: 1\nretry: 5\ndata: a\n\n", b"a", None),
    "unknown fields": (b"date: x\ndatum: y\nDATA: z\n data: q\ndata: a\n\n", b"a", None),
    "a comment": (b": keep-alive\n\n", None, None),
    "a comment among data": (b"data: a\n: keep-alive\ndata: b\n\n", b"a\nb", None),
    "a colon in the data": (b"data: a: b\n\n", b"a: b", None),
    "a blank line alone": (b"\n", None, None),
    "unicode line ends are text": (
        "data: a\u2028b\u2029c\u0085d\x0be\x0cf\n\n".encode(),
        "a\u2028b\u2029c\u0085d\x0be\x0cf".encode(),
        None,
    ),
    "nul": (b"data: a\x00b\n\n", b"a\x00b", None),
    "not utf-8": (b"data: \xff\xfe\n\n", b"\xff\xfe", None),
}


@pytest.mark.parametrize(("raw", "data", "name"), ONE_EVENT.values(), ids=ONE_EVENT.keys())
def test_one_event_is_read_at_once_and_again_when_others_surround_it(raw: bytes, data: bytes, name: str | None) -> None:
    event = SseEvent(raw, data, name)
    other = SseEvent(b"data: other\n\n", b"other")
    assert split(raw) == [event]
    assert split(other.raw, raw, other.raw) == [other, event, other]
    assert split(other.raw + other.raw + raw + other.raw) == [other, other, event, other]
    assert split(*[bytes([byte]) for byte in other.raw + raw + other.raw]) == [other, event, other]


def test_a_byte_order_mark_belongs_to_no_event() -> None:
    assert split(b"\xef\xbb\xbfdata: a\n\n") == [SseEvent(b"data: a\n\n", b"a")]
    assert split(b"\xef", b"\xbb", b"\xbf", b"data: a\n\n") == [SseEvent(b"data: a\n\n", b"a")]
    twice = split(b"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n")
    assert twice[1] == SseEvent(b"\xef\xbb\xbfdata: b\n\n", None), "only at the start of the stream"


def test_what_only_begins_like_a_byte_order_mark_is_kept() -> None:
    splitter = SseSplitter()
    assert splitter.feed(b"\xef\xbb") == []
    assert splitter.feed(b"data: a\n\n") == [SseEvent(b"\xef\xbbdata: a\n\n", None)]


def test_an_event_that_ends_in_cr_waits_for_what_follows() -> None:
    splitter = SseSplitter()
    assert splitter.feed(b"data: a\r\n\r") == []
    assert splitter.feed(b"\n") == [SseEvent(b"data: a\r\n\r\n", b"a")]
    assert splitter.feed(b"data: b\r\r") == []
    assert splitter.feed(b"data: c\r\r") == [SseEvent(b"data: b\r\r", b"b")]
    assert splitter.close() == SseEvent(b"data: c\r\r", b"c")


@pytest.mark.parametrize(
    ("left", "event"),
    [
        (b"", None),
        (b"data: a", SseEvent(b"data: a", b"a", complete=False)),
        (b"data: a\n", SseEvent(b"data: a\n", b"a", complete=False)),
        (b"data: a\r", SseEvent(b"data: a\r", b"a", complete=False)),
        (b"event: x\ndata: a", SseEvent(b"event: x\ndata: a", b"a", "x", complete=False)),
        (b"da", SseEvent(b"da", None, complete=False)),
        (b": comment", SseEvent(b": comment", None, complete=False)),
        (b"\xef\xbb", SseEvent(b"\xef\xbb", None, complete=False)),
    ],
)
def test_what_is_left_at_the_end_is_given_as_incomplete(left: bytes, event: SseEvent | None) -> None:
    splitter = SseSplitter()
    assert splitter.feed(left) == []
    assert splitter.close() == event
    assert splitter.close() is None


def test_nothing_is_left_after_a_whole_event() -> None:
    splitter = SseSplitter()
    splitter.feed(b"data: a\n\n")
    assert splitter.close() is None


@pytest.mark.parametrize("reads", [1, 7, 100], ids=lambda reads: f"{reads} bytes a read")
def test_an_event_over_the_limit_is_refused_after_those_before_it(reads: int) -> None:
    splitter = SseSplitter(max_event_bytes=20)
    stream = b"data: " + b"x" * 12 + b"\n\n" + b"data: " + b"x" * 13 + b"\n\ndata: a\n\n"
    events: list[SseEvent] = []

    def feed_all() -> None:
        for start in range(0, len(stream), reads):
            events.extend(splitter.feed(stream[start : start + reads]))
        splitter.close()

    with pytest.raises(ProviderError) as caught:
        feed_all()
    assert caught.value.kind is FailureKind.TOO_LARGE
    assert [event.data for event in events] == [b"x" * 12]
    with pytest.raises(ProviderError):
        splitter.feed(b"data: b\n\n")
    with pytest.raises(ProviderError):
        splitter.close()


def test_a_large_event_in_single_bytes_takes_linear_time() -> None:
    """A second look at the whole buffer for each byte would take hours."""
    splitter = SseSplitter(max_event_bytes=2 << 20)
    event = b"data: " + b"x" * (1 << 20) + b"\n\n"
    started = time.process_time()
    events = [found for byte in event for found in splitter.feed(bytes([byte]))]
    assert [len(found.raw) for found in events] == [len(event)]
    assert time.process_time() - started < 30


@pytest.mark.parametrize("line_end", [b"\n", b"\r", b"\r\n"])
def test_many_short_lines_in_one_read_take_linear_time(line_end: bytes) -> None:
    """Looking for each line's end through the whole buffer would take minutes."""
    splitter = SseSplitter()
    stream = (b"data:a" + line_end * 2) * 200_000
    started = time.process_time()
    events = splitter.feed(stream)
    assert len(events) >= 199_999
    assert time.process_time() - started < 20
