"""Damaged requests, read by our server and by h11: what is run is what h11 reads too, and what it refuses is refused.

h11 was written from the RFCs, in another language and with another grammar than llhttp, which our server reads with. A
request that the two understand differently could be smuggled past whatever stands in front of the gateway.
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

from tests.fakes.wire import Run, Told, serve_bytes

REQUESTS = [
    b"POST /v1/chat HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nX-A: b c\r\n\r\nabc",
    b"POST /v1/chat HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nX-A: b c\r\n\r\n0\r\n",
    b"POST /a?b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;e=f\r\nde\r\n0\r\nT: u\r\n\r\n",
    b"POST /a HTTP/1.1\r\nHost: x:80\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\nhi",
    b"GET /a HTTP/1.1\r\nHost: [::1]\r\nConnection: keep-alive\r\n\r\n",
    b"HEAD /a HTTP/1.1\r\nHost: x\r\nAccept:\r\n\r\n",
    b"POST http://x/a HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
    b"POST /a HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\nhi",
    b"POST /a HTTP/1.1\r\nHost: x\r\nConnection: a, close\r\nContent-Length: 1\r\n\r\n0",
    b"POST /a HTTP/1.0\r\nContent-Length: 2\r\n\r\nhi",
]
LAST = b"POST /last HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nlast"

# What makes two readers disagree, where it stands or in place of something.
BITS = [
    *(b"\r\n", b"\n", b"\r", b" ", b"\t", b":", b",", b";", b"=", b'"', b"\x00", b"\x0b", b"\x7f", b"\x80", b"_", b"#"),
    *(b"0", b"1", b"-", b"+", b"a", b"X", b"\r\n\r\n", b"0\r\n\r\n", b"1\r\na\r\n0\r\n\r\n", b"fffffffffffffffff"),
    *(
        b"Content-Length: 1\r\n",
        b"Content-Length: 3\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: x\r\n",
    ),
    *(
        b"chunked",
        b", chunked",
        b"identity",
        b"Host: y\r\n",
        b"HTTP/1.0",
        b"HTTP/1.1",
        b"HTTP/2.0",
        b"GET ",
        b"CONNECT ",
    ),
    *(b"Connection: close\r\n", b"Upgrade: h2c\r\nConnection: upgrade\r\n", b"Expect: 100-continue\r\n", b"/", b"*"),
]

CLOSING_TRAILER = b"POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nConnection: close\r\n\r\n"
# RFC 9112, 2.2 and 3, let a server overlook these: empty lines before a request, and more than one space in its first.
OVERLOOKED = re.compile(r"no request line received|illegal request line: bytearray\(b['\"](\\r|.*  )")


@dataclass(frozen=True, slots=True)
class Reading:
    """What h11 made of some bytes."""

    runs: list[Run]
    refused: str
    """Why, or an empty string."""


def read_by_h11(data: bytes) -> Reading:
    """Read *data* as a server would that answers each request at once."""
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=32 * 1024)
    connection.receive_data(data)
    runs: list[Run] = []
    try:
        while True:
            event = connection.next_event()
            match event:
                case h11.Request():
                    method, target, body = event.method.decode(), event.target.decode("latin-1"), b""
                case h11.Data():
                    body += bytes(event.data)
                case h11.EndOfMessage():
                    runs.append(Run(method, path_of(target), body))
                    if method == "CONNECT":
                        return Reading(runs, "")  # whoever agreed to it would be a proxy, and read no further
                    connection.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
                    connection.send(h11.EndOfMessage())
                    if h11.MUST_CLOSE in (connection.our_state, connection.their_state):
                        return Reading(runs, "")
                    connection.start_next_cycle()
                case _:
                    return Reading(runs, "")  # it waits for more
    except h11.RemoteProtocolError as error:
        return Reading(runs, str(error))


def path_of(target: str) -> str:
    return re.sub(r"^https?://[^/?]*", "", target, flags=re.IGNORECASE).partition("?")[0] or "/"


def answers(told: Told) -> list[int]:
    """The statuses of what the server wrote, which h11 has to be able to read."""
    rest, statuses = told.written, []
    methods = iter([run.method for run in told.runs])
    while rest:
        client = h11.Connection(h11.CLIENT)
        client.send(h11.Request(method=next(methods, "POST"), target="/", headers=[("host", "x")]))
        client.send(h11.EndOfMessage())
        client.receive_data(rest)
        if told.ended:
            client.receive_data(b"")
        while not isinstance(event := client.next_event(), h11.EndOfMessage):
            assert event not in (h11.NEED_DATA, h11.PAUSED), rest
            if isinstance(event, h11.Response):
                statuses.append(event.status_code)
        rest = client.trailing_data[0]
    return statuses


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


damages = st.lists(
    st.tuples(st.integers(min_value=0), st.integers(0, 4), st.one_of(st.sampled_from(BITS), st.just(b""))),
    max_size=2,
)


@st.composite
def wires(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    """Some damaged requests, each perhaps sent again, and a sound one behind them; and the reads in which they come."""
    parts = []
    for request in draw(st.lists(st.sampled_from(REQUESTS), min_size=1, max_size=2)):
        damaged = request
        for place, lost, put in draw(damages):
            place %= len(damaged) + 1
            damaged = damaged[:place] + put + damaged[place + lost :]
        parts += draw(st.sampled_from([[damaged], [damaged, damaged], [request, damaged], [damaged, request]]))
    wire = b"".join([*parts, LAST])
    if draw(st.booleans()):
        return wire, [*parts, LAST]
    cuts = draw(st.lists(st.integers(0, len(wire)), max_size=4))
    return wire, [wire[start:end] for start, end in itertools.pairwise([0, *sorted(cuts), len(wire)])]


def compare(loop: asyncio.AbstractEventLoop, wire: bytes, reads: list[bytes], hot: bool) -> None:
    told = loop.run_until_complete(serve_bytes([wire], hot=hot))
    cut = loop.run_until_complete(serve_bytes(reads, hot=hot))
    theirs = read_by_h11(wire)

    statuses = answers(told)
    refused = len(statuses) > len(told.runs)
    assert (cut.runs, answers(cut), cut.ended) == (told.runs, statuses, told.ended)
    assert all(status == 200 for status in statuses[: len(told.runs)])
    assert not refused or (statuses[-1] in range(400, 500) and told.ended)
    if OVERLOOKED.match(theirs.refused):
        assert told.runs[: len(theirs.runs)] == theirs.runs or refused
        return
    assert told.runs == theirs.runs[: len(told.runs)]
    if len(told.runs) < len(theirs.runs):
        assert refused, "read by h11, neither run nor refused"
    elif theirs.refused:
        assert refused, theirs.refused


@given(wires(), st.booleans())
@example((b"CONNECT x HTTP/1.1\r\nHost: x\r\n\r\n" + LAST, [b"CONNECT x HTTP/1.1\r\nHost: x\r\n\r\n", LAST]), False)
@example((CLOSING_TRAILER + LAST, [CLOSING_TRAILER, LAST]), False)
@example((CLOSING_TRAILER + LAST, [CLOSING_TRAILER, LAST]), True)
@settings(max_examples=500, deadline=None)
def test_nothing_is_run_that_h11_reads_differently(
    loop: asyncio.AbstractEventLoop, wire: tuple[bytes, list[bytes]], hot: bool
) -> None:
    compare(loop, *wire, hot)


@pytest.mark.long
@pytest.mark.timeout(3600)
@given(wires(), st.booleans())
@settings(max_examples=40_000, deadline=None)
def test_nothing_among_many_is_run_that_h11_reads_differently(
    loop: asyncio.AbstractEventLoop, wire: tuple[bytes, list[bytes]], hot: bool
) -> None:
    compare(loop, *wire, hot)
