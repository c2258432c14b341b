"""What both exchanges take for a route, and how requests share a connection."""

from __future__ import annotations

import pytest

from tests.fakes.fake_plane import Served
from tests.fakes.raw_client import post


@pytest.mark.parametrize("target", ["/v1/echo?x=1&y=%20", "/v1/%65cho", "/%76%31/echo"])
async def test_a_route_is_matched_by_its_decoded_path(served: Served, target: str) -> None:
    client = await served.connect()
    await client.send(post(target, b"x"))
    answer = await client.answer()
    assert (answer.status, answer.headers["x-path"]) == (200, "/v1/echo")


@pytest.mark.parametrize(
    "target",
    ["//v1/echo", "/v1//echo", "/v1/./echo", "/v1/x/../echo", "/v1/echo/", "/V1/echo", "/v1/%2565cho", "/v1%2"],
)
async def test_a_path_that_only_resembles_a_route_is_none(served: Served, target: str) -> None:
    client = await served.connect()
    await client.send(post(target, b"x"))
    assert (await client.answer()).headers["x-cold"] == "yes"


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"])
async def test_other_methods_go_to_the_application(served: Served, method: str) -> None:
    client = await served.connect()
    await client.send(f"{method} /v1/echo HTTP/1.1\r\nHost: x\r\nX-HTTP-Method-Override: POST\r\n\r\n".encode())
    assert (await client.answer(head_request=method == "HEAD")).headers["x-cold"] == "yes"


async def test_the_application_gets_its_request_as_if_nothing_stood_in_front(served: Served) -> None:
    client = await served.connect()
    await client.send(post("/cold/a%20b?q=1", b"hello", "X-Thing: Yes"))
    answer = await client.answer()
    assert answer.headers["x-seen"] == "POST /cold/a b q=1 host,content-length,x-thing"
    assert answer.body == b"hello"


async def test_hot_and_cold_requests_share_a_connection(served: Served) -> None:
    client = await served.connect()
    for _ in range(3):
        await client.send(post("/v1/echo", b"hot"))
        assert (await client.answer()).body == b"hot"
        await client.send(post("/cold", b"cold"))
        assert (await client.answer()).body == b"cold"


@pytest.mark.parametrize("order", ["hh", "hc", "ch", "cc", "hchc", "chhc", "hhhhhhhhhhhhhhhhhhhh", "hccccccccccccch"])
async def test_pipelined_requests_are_answered_in_order(served: Served, order: str) -> None:
    client = await served.connect()
    paths = {"h": "/v1/slow-echo", "c": "/cold/slow"}
    await client.send(b"".join(post(paths[kind], b"%d" % n) for n, kind in enumerate(order)))
    for number in range(len(order)):
        assert (await client.answer()).body == b"%d" % number


async def test_a_pipelined_stream_does_not_mix_with_the_next_answer(served: Served) -> None:
    client = await served.connect()
    await client.send(post("/v1/stream", b"5") + post("/v1/echo", b"next") + post("/v1/stream", b"2"))
    assert len((await client.answer()).chunks) == 5
    assert (await client.answer()).body == b"next"
    assert len((await client.answer()).chunks) == 2


async def test_a_client_that_asks_to_close_is_obeyed(served: Served) -> None:
    client = await served.connect()
    await client.send(post("/v1/echo", b"x", "Connection: close"))
    answer = await client.answer()
    assert (answer.status, answer.headers["connection"]) == (200, "close")
    assert await client.closed()


async def test_an_http_1_0_client_gets_a_stream_that_ends_with_the_connection(served: Served) -> None:
    client = await served.connect()
    await client.send(b"POST /v1/stream HTTP/1.0\r\nContent-Length: 1\r\n\r\n3")
    answer = await client.answer()
    if served.wire:
        assert "transfer-encoding" not in answer.headers
        assert answer.body == b"data: 0\n\ndata: 1\n\ndata: 2\n\n"
    assert await client.closed()
