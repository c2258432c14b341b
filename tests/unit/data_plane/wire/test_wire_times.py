"""How long a client may take, and what becomes of a client that leaves."""

from __future__ import annotations

import asyncio

import pytest

from gateway.data_plane.exchange import Exchange
from tests.fakes.fake_plane import Served
from tests.fakes.raw_client import post


async def test_headers_that_trickle_are_a_408(served: Served) -> None:
    client = await served.connect()
    await client.send(b"POST /v1/echo HTTP/1.1\r\n")
    for _ in range(6):
        await client.send(b"X: y\r\n")
        await asyncio.sleep(0.06)
    answer = await client.answer()
    assert (answer.status, answer.error["code"]) == (408, "request_timeout")


@pytest.mark.parametrize("path", ["/v1/echo", "/cold"])
async def test_a_body_that_trickles_is_a_408(served: Served, path: str) -> None:
    client = await served.connect()
    await client.send(post(path, b"x" * 100)[:-90])
    for _ in range(8):
        await asyncio.sleep(0.05)
        await client.send(b"x")
    assert (await client.answer()).status == 408


async def test_a_connection_that_says_nothing_is_closed(served: Served) -> None:
    client = await served.connect()
    assert await client.closed()


async def test_an_idle_connection_is_closed(served: Served) -> None:
    client = await served.connect()
    await client.send(post("/v1/echo", b"x"))
    await client.answer()
    assert await client.closed()


async def test_a_running_request_is_not_idle(served: Served) -> None:
    client = await served.connect()
    await client.send(post("/v1/wait", b""))
    await asyncio.sleep(0.7)
    assert served.plane.finished == []


async def test_a_client_that_leaves_behind_pipelined_requests_cancels_the_first(served: Served) -> None:
    client = await served.connect()
    await client.send(post("/v1/wait", b"") + post("/cold", b"x") + post("/v1/echo", b"x"))
    await served.plane.began("/v1/wait")
    client.reset()
    await served.plane.ended("/v1/wait")
    assert served.plane.started == ["/v1/wait"]


async def test_a_client_that_leaves_in_the_middle_of_its_request_is_forgotten(served: Served) -> None:
    for cut in (10, 40, 70, 75):
        client = await served.connect()
        await client.send(post("/v1/echo", b"x" * 20)[:cut])
        await asyncio.sleep(0.01)
        client.reset()
    await served.plane.wait_for(lambda: not served.loopback.server.server_state.connections)
    assert served.plane.started == []


async def test_an_answer_nobody_takes_is_given_up(served: Served) -> None:
    async def large(exchange: Exchange) -> None:
        exchange.respond(200, b"", bytes(40_000_000))

    served.plane.routes["/v1/large"] = large
    client = await served.connect(receive_buffer=4096, limit=4096)
    await client.send(post("/v1/large", b"", "Connection: close"))
    await served.plane.ended("/v1/large")
    await served.plane.wait_for(lambda: not served.loopback.server.server_state.connections)


async def test_a_half_read_request_does_not_hold_up_shutdown(served: Served) -> None:
    client = await served.connect()
    await client.send(b"POST /v1/echo HT")
    await asyncio.sleep(0.02)
    served.loopback.server.should_exit = True
    assert await client.closed()
