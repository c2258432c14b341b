"""However an answer is cut into reads, our HTTP client makes the same of it.

The connection is fed directly: the same splits over real sockets would take hours, and the kernel would join them.
"""

from __future__ import annotations

import asyncio
import itertools
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.errors import ProviderError
from adapters.types import FailureKind
from gateway.gathered import Outbox
from gateway.upstream.base import Origin
from gateway.upstream.connection import Connection
from gateway.upstream.pool import OriginPool
from gateway.upstream.response_parser import MAX_HEAD_BYTES
from tests.fakes.body_sink import CollectingSink

BODY = b'data: {"a":"\xe4\xbd\xa0\xe5\xa5\xbd"}\r\n\r\ndata: [DONE]\n\n'
CHUNKS = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (BODY[:7], BODY[7:8], BODY[8:]))
PACKED = zlib.compress(BODY, wbits=31)

ANSWERS = [
    b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\nX-A: 1\r\nx-a: 2\r\nempty:\r\n\r\n%b" % (len(BODY), BODY),
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n%b0\r\n\r\n" % CHUNKS,
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n%b0\r\nx-trailer: 1\r\n\r\n" % CHUNKS,
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nlink: x\r\n\r\nHTTP/1.1 201 Made\r\ncontent-length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
    b"HTTP/1.1 200 OK\r\n\r\n%b" % BODY,
    b"HTTP/1.0 200 OK\r\n\r\n%b" % BODY,
    b"HTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n%b" % (len(PACKED), PACKED),
    b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n%b" % (len(PACKED) - 4, PACKED[:-4]),
    b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged",
    b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokrubbish",
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n%bzz\r\n" % CHUNKS,
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n%b" % CHUNKS,
    b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nok",
    b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nxyz",
    b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 201 + b"\r\n",
    b"HTTP/1.1 200 OK\r\ncontent-le",
    b"rubbish",
    b"",
]


@dataclass
class Outcome:
    """All that a caller can see."""

    status: int | None
    headers: dict[str, str] | None
    body: bytes
    error: FailureKind | None
    kept: bool


class Wire:
    """As much of a transport as a connection uses."""

    def __init__(self) -> None:
        self.closed = False

    def write(self, data: bytes) -> None:
        pass

    def abort(self) -> None:
        self.closed = True

    close = abort

    def is_closing(self) -> bool:
        return self.closed

    def get_write_buffer_size(self) -> int:
        return 0


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def outcome(loop: asyncio.AbstractEventLoop, reads: list[bytes]) -> Outcome:
    pool = OriginPool(Origin("api", 80))
    wire = Wire()
    connection = Connection(pool, loop)
    connection.connection_made(wire)  # type: ignore[arg-type]
    waiter = connection.request((b"POST / HTTP/1.1\r\n\r\n",), b"{}")
    Outbox.of(loop).flush()  # an answer that came before it would be nobody's
    sink: CollectingSink | None = None
    for read in filter(None, reads):
        if wire.closed:
            break
        connection.data_received(read)
        if sink is None and waiter.done() and waiter.exception() is None:
            sink = CollectingSink()
            waiter.result().stream(sink)
    kept = bool(pool.idle) and not wire.closed
    connection.connection_lost(None)
    if sink is None:
        error = waiter.exception()
        assert isinstance(error, ProviderError)
        return Outcome(None, None, b"", error.kind, kept)
    (end,) = sink.ends
    response = waiter.result()
    return Outcome(response.status, dict(response.headers), sink.data, None if end is None else end.kind, kept)


@given(st.sampled_from(ANSWERS), st.lists(st.integers(min_value=0), max_size=12))
@settings(max_examples=1000, deadline=None)
def test_any_answer_in_any_reads_has_one_outcome(
    loop: asyncio.AbstractEventLoop, answer: bytes, places: list[int]
) -> None:
    edges = [0, *sorted(place % (len(answer) + 1) for place in places), len(answer)]
    expected = outcome(loop, [answer])
    assert outcome(loop, [answer[start:end] for start, end in itertools.pairwise(edges)]) == expected
    assert outcome(loop, [answer[i : i + 1] for i in range(len(answer))]) == expected


@given(st.sampled_from(ANSWERS), st.integers(min_value=0), st.integers(0, 12), st.binary(max_size=12))
@settings(max_examples=1500, deadline=None)
def test_a_damaged_answer_ends_in_an_answer_or_one_typed_error(
    loop: asyncio.AbstractEventLoop, answer: bytes, place: int, lost: int, rubbish: bytes
) -> None:
    place %= len(answer) + 1
    found = outcome(loop, [answer[:place], rubbish, answer[place + lost :]])
    assert found.status is not None or found.error is not None
    assert found.error in (
        None,
        FailureKind.RESET,
        FailureKind.INTERRUPTED,
        FailureKind.MALFORMED,
        FailureKind.TOO_LARGE,
        FailureKind.BAD_ENCODING,
    )
    if found.error is not None:
        assert not found.kept or found.error is FailureKind.BAD_ENCODING


def test_what_is_no_body_counts_from_the_last_piece_of_it(loop: asyncio.AbstractEventLoop) -> None:
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    apart = [b"1;%b\r\n" % (b"a" * 100), b"x\r\n"] * (MAX_HEAD_BYTES // 40)
    got = outcome(loop, [head, *apart, b"0\r\n\r\n"])
    assert (got.error, got.body, got.kept) == (None, b"x" * (len(apart) // 2), True)
    got = outcome(loop, [head, *apart, b"1;", *[b"a" * 1000] * (MAX_HEAD_BYTES // 400)])
    assert (got.error, got.kept) == (FailureKind.TOO_LARGE, False)
