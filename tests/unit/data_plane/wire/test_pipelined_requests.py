"""Requests behind others on one connection: each in its turn, none after a request to close."""

from __future__ import annotations

import pytest

from tests.fakes.fake_plane import Served
from tests.fakes.raw_client import post


async def test_what_follows_a_request_to_close_is_not_run(served: Served) -> None:
    client = await served.connect()
    await client.send(post("/v1/echo", b"first", "Connection: close") + post("/v1/echo", b"second"))
    assert (await client.answer()).body == b"first"
    assert await client.closed()
    assert served.plane.started == ["/v1/echo"]


@pytest.mark.parametrize("first", ["/v1/slow-echo", "/cold/slow"])
async def test_garbage_after_a_request_is_refused_after_its_answer(served: Served, first: str) -> None:
    client = await served.connect()
    await client.send(post(first, b"x") + b"\x01\x02\r\n\r\n")
    assert (await client.answer()).body == b"x"
    assert (await client.answer()).status == 400
    assert await client.closed()


async def test_a_cold_body_that_breaks_behind_a_hot_request_is_refused_in_its_turn(served: Served) -> None:
    client = await served.connect()
    cold = b"POST /cold HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"
    await client.send(post("/v1/slow-echo", b"x") + cold)
    assert (await client.answer()).body == b"x"
    assert (await client.answer()).status == 400


async def test_a_client_that_sends_its_body_unasked_is_not_asked(served: Served) -> None:
    client = await served.connect()
    await client.send(post("/v1/echo", b"abc", "Expect: 100-continue"))
    assert (await client.answer()).status == 200


async def test_a_pipelined_client_is_asked_for_its_body_when_its_turn_comes(served: Served) -> None:
    client = await served.connect()
    request = b"POST /v1/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n"
    await client.send(post("/v1/slow-echo", b"first") + request)
    assert (await client.answer()).body == b"first"
    assert (await client.answer()).status == 100
    await client.send(b"abc")
    assert (await client.answer()).body == b"abc"
