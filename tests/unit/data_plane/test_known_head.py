"""Heads that come again on a connection are known by their bytes, and nothing can be told from it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.data_plane.exchange import ClientHead, Exchange
from gateway.data_plane.known_head import KnownHead, known_head
from gateway.data_plane.limits import WireLimits
from tests.fakes.fake_plane import Served, serve_plane

LIMITS = WireLimits(max_body_bytes=1000)
BEFORE = b"POST /v1/echo HTTP/1.1\r\nHost: gateway\r\nX-Request-Id: abc\r\nContent-Length: "
AFTER = b"\r\nAccept: */*\r\n\r\n"


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async with serve_plane("uvicorn", LIMITS) as served:
        yield served


async def _nothing(_exchange: Exchange) -> None: ...


def _request(body: bytes) -> bytes:
    return BEFORE + b"%d" % len(body) + AFTER + body


def _known(data: bytes, headers: int = 4) -> KnownHead | None:
    return known_head(data, ClientHead("POST", "/v1/echo", [(b"x", b"y")] * headers), _nothing)


async def test_a_head_that_comes_again_is_answered_like_the_first_time(served: Served) -> None:
    client = await served.connect()
    for body in (b"one", b"", b"three", b"x" * 1000, b"12"):
        await client.send(_request(body))
        answer = await client.answer()
        assert (answer.status, answer.body) == (200, body)
        assert answer.headers["x-names"] == "host,x-request-id,content-length,accept"
    assert served.plane.started == ["/v1/echo"] * 5


async def test_a_known_head_is_not_parsed_again(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    client = await served.connect()
    await client.send(_request(b"one"))
    await client.answer()
    read: list[bytes] = []

    def body_in(_known: KnownHead, data: bytes) -> bytes:
        read.append(data)
        return b"instead"

    monkeypatch.setattr(KnownHead, "body_in", body_in)

    await client.send(_request(b"two"))

    assert (await client.answer()).body == b"instead"
    assert read == [_request(b"two")]


@pytest.mark.parametrize("cut", [1, 30, len(BEFORE), len(BEFORE) + 1, len(BEFORE + AFTER) + 1, len(BEFORE + AFTER) + 4])
async def test_a_known_head_may_come_in_pieces(served: Served, cut: int) -> None:
    client = await served.connect()
    await client.send(_request(b"one"))
    await client.answer()

    for _ in range(3):
        request = _request(b"in pieces")
        await client.send(request[:cut])
        await asyncio.sleep(0.01)
        await client.send(request[cut:])
        assert (await client.answer()).body == b"in pieces"


async def test_requests_sent_ahead_are_answered_in_their_order(served: Served) -> None:
    client = await served.connect()
    await client.send(_request(b"first"))
    await client.answer()

    await client.send(b"".join(_request(b"%d" % number) for number in range(6)) + _request(b"last")[:-2])
    await client.send(b"st")

    bodies = [(await client.answer()).body for _ in range(7)]
    assert bodies == [b"0", b"1", b"2", b"3", b"4", b"5", b"last"]


async def test_a_request_may_not_overtake_the_one_before(served: Served) -> None:
    client = await served.connect()
    slow = b"POST /v1/slow-echo HTTP/1.1\r\nHost: gateway\r\nContent-Length: 4\r\n\r\nslow"
    await client.send(slow)
    await client.answer()

    await client.send(slow)
    await served.plane.wait_for(lambda: served.plane.started.count("/v1/slow-echo") == 2)
    await client.send(slow.replace(b"slow", b"fast"))

    assert [(await client.answer()).body for _ in range(2)] == [b"slow", b"fast"]


async def test_a_body_that_is_too_large_is_refused_behind_a_known_head_too(served: Served) -> None:
    client = await served.connect()
    await client.send(_request(b"one"))
    await client.answer()

    await client.send(_request(b"x" * 1001))

    assert (await client.answer()).status == 413
    assert await client.closed()


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"POST /v1/echo HTTP/1.1\r\nHost: a\r\n\r\n",
        _request(b"")[:-4],
        b"POST /v1/echo HTTP/1.1\r\nContent-Length: 1\r\ncontent-length: 1\r\n\r\nx",
        b"POST /v1/echo HTTP/1.1\r\nX: a\r\n b\r\nY: z\r\nContent-Length: 1\r\n\r\nx",
        b"POST /v1/echo HTTP/1.1\r\nX: a\nY: z\r\nZ: z\r\nContent-Length: 1\r\n\r\nx",
        b"POST /v1/echo HTTP/1.1\r\nX: %b\r\nContent-Length: 1\r\n\r\nx" % (b"x" * 5000),
    ],
)
def test_what_cannot_be_told_apart_by_its_bytes_is_not_remembered(request_bytes: bytes) -> None:
    for headers in range(4):
        assert _known(request_bytes, headers) is None


@given(
    digits=st.one_of(st.binary(max_size=16), st.integers(0, 10**13).map(lambda number: b"%d" % number)),
    body=st.binary(max_size=40),
)
def test_only_the_length_may_differ_and_only_as_the_body_has_it(digits: bytes, body: bytes) -> None:
    known = _known(_request(b"one"))
    assert known is not None
    right = digits.isdigit() and int(digits) == len(body) and len(digits) <= 12

    assert known.body_in(BEFORE + digits + AFTER + body) == (body if right else None)


@given(st.integers(0, len(_request(b"two")) - 1), st.integers(0, 255))
def test_one_other_byte_in_the_head_is_another_head(place: int, byte: int) -> None:
    known, request = _known(_request(b"one")), bytearray(_request(b"two"))
    assert known is not None
    same = request[place] == byte or place >= len(request) - 3 or place == len(BEFORE)
    request[place] = byte

    found = known.body_in(bytes(request))
    assert (found is not None) == (same and (place != len(BEFORE) or byte == ord("3")))
