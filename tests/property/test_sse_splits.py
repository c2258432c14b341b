"""However a stream is cut into reads, the splitter gives what a plain reading of the specification gives."""

from __future__ import annotations

import itertools
import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.upstream.sse import SseEvent, SseSplitter


def by_the_specification(stream: bytes) -> list[SseEvent]:
    """WHATWG HTML, section 9.2.6 "Interpreting an event stream", read 2026-11-30, on the whole stream at once.

    What the specification drops is kept and marked here: blocks without data, and the last one without a blank line.
    """
    stream = stream.removeprefix(b"\xef\xbb\xbf")
    events: list[SseEvent] = []
    raw, data_buffer, event_type, has_data = b"", b"", b"", False
    for line in re.findall(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$", stream):
        raw += line
        content = line.rstrip(b"\r\n")
        if content == b"":
            events.append(_dispatch(raw, data_buffer if has_data else None, event_type, True))
            raw, data_buffer, event_type, has_data = b"", b"", b"", False
        elif content.startswith(b":"):
            pass
        else:
            field, _, value = content.partition(b":")
            value = value.removeprefix(b" ")
            if field == b"event":
                event_type = value
            elif field == b"data":
                data_buffer += value + b"\n"
                has_data = True
    if raw:
        events.append(_dispatch(raw, data_buffer if has_data else None, event_type, False))
    return events


def _dispatch(raw: bytes, data: bytes | None, event_type: bytes, complete: bool) -> SseEvent:
    return SseEvent(
        raw,
        None if data is None else data.removesuffix(b"\n"),
        event_type.decode("utf-8", "replace") or None,
        complete,
    )


def by_the_splitter(reads: list[bytes]) -> list[SseEvent]:
    splitter = SseSplitter()
    events = [event for read in reads for event in splitter.feed(read)]
    last = splitter.close()
    return events if last is None else [*events, last]


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(stream) + 1) for place in places), len(stream)]
    return [stream[start:end] for start, end in itertools.pairwise(edges)]


PIECES = [
    b"data: ", b"data:", b"data", b"event: ", b"event", b"id: 1", b"retry: 10", b": ", b":", b" ", b"\n", b"\r",
    b"\r\n", b"\n\n", b"\r\n\r\n", b"\r\r", b"\xef\xbb\xbf", b"\xef\xbb", b"\x00", b"\x0b\x0c",
    "\u2028\u2029\u0085".encode(),
    "\u00e9\u4e2d\U0001f600".encode(), b'{"choices":[{"delta":{"content":"hi"}}]}', b"[DONE]", b"x",
    b'data: {"a":1}\n\n', b"data: [DONE]\n\n", b": keep-alive\n\n", b"event: ping\ndata: {}\n\n",
]  # fmt: skip
streams = st.lists(st.sampled_from(PIECES) | st.binary(max_size=4), max_size=24).map(b"".join)


@given(streams, st.lists(st.integers(min_value=0), max_size=12))
@settings(max_examples=1500, deadline=None)
def test_any_stream_in_any_reads_gives_the_events_of_the_specification(stream: bytes, places: list[int]) -> None:
    expected = by_the_specification(stream)
    assert by_the_splitter(cut(stream, places)) == expected
    assert by_the_splitter([stream[i : i + 1] for i in range(len(stream))]) == expected
    assert b"".join(event.raw for event in expected) == stream.removeprefix(b"\xef\xbb\xbf")


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_million_splits_give_the_events_of_the_specification() -> None:
    dice = random.Random(20261130)
    for _ in range(50_000):
        stream = b"".join(dice.choices(PIECES, k=dice.randrange(1, 24)))
        expected = by_the_specification(stream)
        for _ in range(20):
            places = [dice.randrange(len(stream) + 1) for _ in range(dice.randrange(12))]
            reads = cut(stream, places)
            assert by_the_splitter(reads) == expected, reads
