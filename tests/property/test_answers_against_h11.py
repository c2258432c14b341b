"""Damaged answers, read by our client and by h11: what we take for a whole answer is one to h11, with the same body.

A connection is used again only where h11 would use it again too, but for what is told at `KEPT_BY_US_ALONE`.
"""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

import h11
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.property.test_http_answer_splits import outcome

ANSWERS = [
    b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\nX-A: 1\r\n\r\nabc",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;e=f\r\nde\r\n0\r\nt: u\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nlink: x\r\n\r\nHTTP/1.1 201 Made\r\ncontent-length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nconnection: a, close\r\ncontent-length: 2\r\n\r\nok",
    b"HTTP/1.1 200 OK\r\n\r\nuntil the end",
    b"HTTP/1.0 200 OK\r\n\r\nuntil the end",
    b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nok",
    b"HTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n",
    b"HTTP/1.1 429 \r\ncontent-length: 2\r\n\r\n{}",
    b"HTTP/1.1 500\r\ncontent-length: 2\r\n\r\n{}",
]
TRAILERS = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n"
    b"transfer-encoding: x\r\ncontent-length: 9\r\n\r\n"
)
BITS = [
    *(b"\r\n", b"\n", b"\r", b" ", b"\t", b":", b",", b";", b"=", b'"', b"\x00", b"\x0b", b"\x7f", b"\x80", b"_"),
    *(
        b"0",
        b"1",
        b"2",
        b"-",
        b"+",
        b"a",
        b"X",
        b"\r\n\r\n",
        b"0\r\n\r\n",
        b"1\r\na\r\n0\r\n\r\n",
        b"fffffffffffffffff",
    ),
    *(
        b"content-length: 1\r\n",
        b"content-length: 3\r\n",
        b"transfer-encoding: chunked\r\n",
        b"transfer-encoding: x\r\n",
    ),
    *(b"chunked", b"gzip, ", b", chunked", b"204", b"101", b"HTTP/1.0", b"HTTP/1.1", b"HTTP/2.0", b"keep-alive"),
    *(b"connection: close\r\n", b"upgrade: h2c\r\nconnection: upgrade\r\n", b"HTTP/1.1 101 S\r\n\r\n"),
    *(b"HTTP/1.1 102 P\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged"),
]

# Harmless, and taken by llhttp: control characters in the words behind a status, empty lines before an answer.
OVERLOOKED = re.compile(r"no response line received|illegal status line: bytearray\(b['\"](HTTP/1\.[01] [0-9]{3} |\\r)")
# A length or an encoding in a trailer counts for nothing, and may be passed over or refused (RFC 7230, section 4.1.2).
TRAILER = re.compile(r"Only Transfer-Encoding: chunked|multiple Transfer-Encoding|(bad|conflicting) Content-Length")
# h11 gives up a connection of HTTP/1.0 even when both sides would keep it, and one with an empty line behind an answer.
KEPT_BY_US_ALONE = re.compile(rb"HTTP/1\.0 |[\r\n]\Z")


@dataclass(frozen=True, slots=True)
class Reading:
    """What h11 made of an answer and the end of the connection behind it."""

    status: int | None
    body: bytes
    problem: str
    """Why it is no whole answer, or an empty string."""
    kept: bool


def read_by_h11(data: bytes) -> Reading:
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=64 * 1024)
    connection.send(h11.Request(method="POST", target="/", headers=[("host", "x"), ("content-length", "0")]))
    connection.send(h11.EndOfMessage())
    connection.receive_data(data)
    status, body, ended = None, b"", False
    try:
        while True:
            match event := connection.next_event():
                case h11.Response():
                    status = event.status_code
                case h11.Data():
                    body += bytes(event.data)
                case h11.EndOfMessage():
                    kept = not ended and connection.their_state is h11.DONE and not connection.trailing_data[0]
                    return Reading(status, body, "", kept)
                case h11.InformationalResponse():
                    pass
                case h11.NEED_DATA if not ended:
                    ended = True
                    connection.receive_data(b"")
                case _:
                    return Reading(status, body, f"then {event}", kept=False)
    except h11.RemoteProtocolError as error:
        return Reading(status, body, str(error), kept=False)


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


@st.composite
def damaged(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    """An answer, perhaps with another behind it, damaged; and the reads in which it comes."""
    wire = b"".join(draw(st.lists(st.sampled_from(ANSWERS), min_size=1, max_size=2)))
    strikes = st.tuples(st.integers(min_value=0), st.integers(0, 4), st.one_of(st.sampled_from(BITS), st.just(b"")))
    for place, lost, put in draw(st.lists(strikes, max_size=3)):
        place %= len(wire) + 1
        wire = wire[:place] + put + wire[place + lost :]
    cuts = draw(st.lists(st.integers(0, len(wire)), max_size=4))
    return wire, [wire[start:end] for start, end in itertools.pairwise([0, *sorted(cuts), len(wire)])]


def compare(loop: asyncio.AbstractEventLoop, wire: bytes, reads: list[bytes]) -> None:
    ours = outcome(loop, [wire])
    cut = outcome(loop, reads)
    theirs = read_by_h11(wire)

    assert (cut.status, cut.body, cut.error) == (ours.status, ours.body, ours.error)
    assert ours.kept or not cut.kept
    if ours.error is None and theirs.status is not None and TRAILER.match(theirs.problem):
        assert (ours.status, ours.body) == (theirs.status, theirs.body)
    elif ours.error is None and not OVERLOOKED.match(theirs.problem):
        assert (ours.status, ours.body, "") == (theirs.status, theirs.body, theirs.problem)
        if not KEPT_BY_US_ALONE.search(wire):
            assert ours.kept == theirs.kept


@given(damaged())
@example((TRAILERS, [TRAILERS]))
@settings(max_examples=1500, deadline=None)
def test_no_answer_is_whole_that_h11_reads_differently(
    loop: asyncio.AbstractEventLoop, answer: tuple[bytes, list[bytes]]
) -> None:
    compare(loop, *answer)


@pytest.mark.long
@pytest.mark.timeout(3600)
@given(damaged())
@settings(max_examples=30_000, deadline=None)
def test_no_answer_among_many_is_whole_that_h11_reads_differently(
    loop: asyncio.AbstractEventLoop, answer: tuple[bytes, list[bytes]]
) -> None:
    compare(loop, *answer)
