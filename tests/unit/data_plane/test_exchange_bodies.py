"""What both exchanges do with bodies: too large, too slow, compressed, or only announced."""

from __future__ import annotations

import asyncio

import pytest

from tests.fakes.fake_plane import Served
from tests.fakes.raw_client import post


async def test_a_body_announced_too_large_is_refused_before_it_is_read(served: Served) -> None:
    client = await served.connect()
    await client.send(b"POST /v1/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100001\r\n\r\nabc")
    answer = await client.answer()
    assert (answer.status, answer.error["code"]) == (413, "request_too_large")


async def test_a_chunked_body_is_refused_once_it_is_too_large(served: Served) -> None:
    client = await served.connect()
    await client.send(b"POST /v1/echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
    await client.send(b"%x\r\n" % 200_000 + b"x" * 150_000)
    assert (await client.answer()).status == 413


async def test_a_client_reads_the_413_though_it_sends_everything_first(served: Served) -> None:
    client = await served.connect()
    body = b"x" * 8_000_000
    await client.send(post("/v1/echo", body))
    assert (await client.answer()).status == 413


async def test_a_body_of_just_the_limit_is_taken(served: Served) -> None:
    client = await served.connect()
    await client.send(post("/v1/echo", b"x" * 100_000))
    assert (await client.answer()).status == 200


@pytest.mark.parametrize("length", ["9" * 17, "9" * 19])
async def test_an_absurd_length_is_refused(served: Served, length: str) -> None:
    client = await served.connect()
    await client.send(f"POST /v1/echo HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode())
    assert (await client.answer()).status == 413


async def test_a_body_that_never_comes_is_a_408(served: Served) -> None:
    client = await served.connect()
    await client.send(b"POST /v1/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc")
    answer = await client.answer()
    assert (answer.status, answer.error["code"]) == (408, "request_timeout")
    assert answer.headers["connection"] == "close"


async def test_a_large_body_that_keeps_coming_is_given_time(served: Served) -> None:
    client = await served.connect()
    request = post("/v1/echo", b"x" * 90_000)
    for start in range(0, len(request), 15_000):
        await client.send(request[start : start + 15_000])
        await asyncio.sleep(0.15)
    assert (await client.answer()).status == 200


@pytest.mark.parametrize("encoding", ["gzip", "br", "identity, gzip"])
async def test_a_compressed_body_is_a_415(served: Served, encoding: str) -> None:
    client = await served.connect()
    await client.send(post("/v1/echo", b"x", f"Content-Encoding: {encoding}"))
    assert (await client.answer()).status == 415


async def test_identity_is_no_compression(served: Served) -> None:
    client = await served.connect()
    await client.send(post("/v1/echo", b"x", "Content-Encoding: identity"))
    assert (await client.answer()).status == 200


async def test_a_client_that_asks_may_send_its_body(served: Served) -> None:
    client = await served.connect()
    await client.send(b"POST /v1/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
    assert (await client.answer()).status == 100
    await client.send(b"abc")
    assert (await client.answer()).body == b"abc"


async def test_a_client_that_asks_with_too_large_a_body_is_refused_at_once(served: Served) -> None:
    client = await served.connect()
    await client.send(b"POST /v1/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 999999\r\nExpect: 100-continue\r\n\r\n")
    assert (await client.answer()).status == 413


async def test_another_expectation_is_a_417(served: Served) -> None:
    client = await served.connect()
    await client.send(post("/v1/echo", b"x", "Expect: miracles"))
    assert (await client.answer()).status == 417
