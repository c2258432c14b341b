"""How large a head, its trailers and a body may be, and what is read of one that is larger."""

from __future__ import annotations

import pytest

from tests.fakes.fake_plane import Served
from tests.fakes.raw_client import post
from tests.unit.data_plane.wire.refused import CHUNKED, refused


@pytest.mark.parametrize("path", [b"/v1/echo", b"/cold"])
async def test_too_many_headers_are_a_431(served: Served, path: bytes) -> None:
    lines = b"".join(b"X-%d: y\r\n" % number for number in range(100))
    request = b"POST " + path + b" HTTP/1.1\r\nHost: x\r\n" + lines + b"Content-Length: 0\r\n\r\n"
    await refused(served, request, 431, "headers_too_large")


@pytest.mark.parametrize("path", [b"/v1/echo", b"/cold"])
@pytest.mark.parametrize("ending", [b"\r\nContent-Length: 0\r\n\r\n", b""])
async def test_too_large_headers_are_a_431(served: Served, path: bytes, ending: bytes) -> None:
    request = b"POST " + path + b" HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 33_000 + ending
    await refused(served, request, 431, "headers_too_large")


async def test_too_long_a_target_is_a_431(served: Served) -> None:
    request = b"GET /" + b"y" * 33_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n"
    await refused(served, request, 431, "headers_too_large")


async def test_a_large_body_is_not_taken_for_headers(served: Served) -> None:
    client = await served.connect()
    await client.send(post("/v1/echo", b"x" * 90_000) + post("/v1/echo", b"y" * 90_000))
    assert (await client.answer()).body == b"x" * 90_000
    assert (await client.answer()).body == b"y" * 90_000


@pytest.mark.parametrize("path", ["/v1/echo", "/cold"])
@pytest.mark.parametrize("piece", [b"X: y\r\n" * 500, b"y" * 4000], ids=["many", "large"])
async def test_endless_trailers_are_a_431(served: Served, path: str, piece: bytes) -> None:
    client = await served.connect()
    await client.send(f"POST {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: y".encode())
    for _ in range(30):
        await client.send(piece)
    assert (await client.answer()).status == 431
    assert await client.closed()


async def test_an_endless_chunk_extension_is_a_431(served: Served) -> None:
    client = await served.connect()
    await client.send(CHUNKED + b"1;")
    for _ in range(30):
        await client.send(b"y" * 4000)
    assert (await client.answer()).status == 431


async def test_chunks_may_have_extensions_and_a_body_trailers(served: Served) -> None:
    client = await served.connect()
    await client.send(CHUNKED)
    for _ in range(300):
        await client.send(b"1;signature=" + b"y" * 500 + b"\r\nx\r\n")
    await client.send(b"0\r\nX-Checksum: y\r\nHost: z\r\n\r\n")
    answer = await client.answer()
    assert answer.body == b"x" * 300
    assert answer.headers["x-names"] == "host,transfer-encoding"


@pytest.mark.parametrize("size", [100_001, 9_000_000])
async def test_too_large_a_cold_body_is_a_413(served: Served, size: int) -> None:
    client = await served.connect()
    await client.send(b"POST /cold HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size)
    assert (await client.answer()).status == 413


async def test_after_an_early_refusal_input_is_taken_only_for_a_while(served: Served) -> None:
    client = await served.connect()
    await client.send(b"POST /v1/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999\r\n\r\n")
    assert (await client.answer()).status == 413
    with pytest.raises(ConnectionError):
        await client.send_for_ever(b"x" * 100_000)


async def test_an_early_refusal_does_not_ask_for_the_body(served: Served) -> None:
    client = await served.connect()
    await client.send(post("/v1/echo", b"", "Expect: 100-continue", "Content-Encoding: gzip"))
    assert (await client.answer()).status == 415
