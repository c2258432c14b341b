"""What only a server that reads the wire itself can enforce."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from gateway.data_plane.limits import WireLimits
from tests.fakes.fake_plane import Served, serve_plane
from tests.fakes.raw_client import RawClient, post

LIMITS = WireLimits(
    max_body_bytes=100_000,
    header_seconds=0.3,
    body_seconds=0.3,
    keep_alive_seconds=0.4,
    write_stall_seconds=0.4,
    buffer_bytes=64 * 1024,
    linger_seconds=0.4,
    linger_bytes=1_000_000,
)

HEAD = b"POST /v1/echo HTTP/1.1\r\nHost: gateway\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async with serve_plane("uvicorn", LIMITS) as served:
        yield served


async def refused(served: Served, request: bytes, status: int, code: str) -> None:
    client = await served.connect()
    await client.send(request)
    answer = await client.answer()
    assert (answer.status, answer.error["code"]) == (status, code)
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["connection"] == "close"
    assert answer.headers["x-request-id"] == answer.error["request_id"]
    assert await client.closed()
    assert served.plane.started == []


@pytest.mark.parametrize(
    "request_bytes",
    [
        HEAD + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
        HEAD + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
        HEAD + b"Content-Length: 3, 3\r\n\r\nabc",
        HEAD + b"Content-Length: +3\r\n\r\nabc",
        HEAD + b"Content-Length: -1\r\n\r\n",
        HEAD + b"Content-Length: 0x3\r\n\r\nabc",
        HEAD + b"Content-Length: \r\n\r\nabc",
        HEAD + b"Content-Length: 99999999999999999999999\r\n\r\n",
        b"POST /v1/echo HTTP/1.1\nHost: gateway\nContent-Length: 0\n\n",
        b"POST /v1/echo HTTP/1.1\r\nHost: gateway\nContent-Length: 0\r\n\r\n",
        b"POST /v1/echo HTTP/1.1\r\nHost: gateway\rContent-Length: 0\r\n\r\n",
        b"POST /v1/echo HTTP/1.1\rHost: gateway\r\nContent-Length: 0\r\n\r\n",
        HEAD + b"Content-Length: 0\r\n\rX",
        CHUNKED + b"1\rx\r\n0\r\n\r\n",
        CHUNKED + b"0\r\n\rX",
        HEAD + b"X: a\r\n b\r\nContent-Length: 0\r\n\r\n",
        HEAD + b"X : a\r\nContent-Length: 0\r\n\r\n",
        HEAD + b" X: a\r\nContent-Length: 0\r\n\r\n",
        HEAD + b": a\r\nContent-Length: 0\r\n\r\n",
        HEAD + b"X: a\x00b\r\nContent-Length: 0\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        CHUNKED + b"3\nabc\r\n0\r\n\r\n",
        CHUNKED + b"0x3\r\nabc\r\n0\r\n\r\n",
        CHUNKED + b"3\r\nabcd\r\n0\r\n\r\n",
        CHUNKED + b"fffffffffffffffff\r\nabc",
        b"POST /v1/echo HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
        b"POST /v1/echo HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: 0\r\n\r\n",
        b"POST /v1/echo HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /v1/echo HTTP/2.0\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
        b"POST /v1/echo HTTP/1.2\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
        b"POST /v1/ echo HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
        b"POST /v1/\xff HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
        b"post /v1/echo HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
        HEAD + b"Transfer-Encoding: identity\r\n\r\n",
        HEAD + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked;a=b\r\n\r\n0\r\n\r\n",
        CHUNKED + b"0\r\nX : y\r\n\r\n",
        CHUNKED + b"0\r\nContent-Length: 3\r\n\r\n",
        CHUNKED + b"1;a=\nb\r\nx\r\n0\r\n\r\n",
        CHUNKED + b"1 \r\nx\r\n0\r\n\r\n",
        b"GET /cold HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)
async def test_what_two_readers_could_understand_differently_is_a_400(served: Served, request_bytes: bytes) -> None:
    await refused(served, request_bytes, 400, "malformed_http")


@pytest.mark.parametrize(
    "host", [b"a b", b"a/b", b"u@a", b"a:b", b"a:1:2", b"http://a", b"[::1", b"a?b", b"a#b", b"\xe4", b"%"]
)
@pytest.mark.parametrize("path", [b"/v1/echo", b"/cold"])
async def test_a_host_that_is_none_is_a_400(served: Served, path: bytes, host: bytes) -> None:
    request = b"POST " + path + b" HTTP/1.1\r\nHost: " + host + b"\r\nContent-Length: 0\r\n\r\n"
    await refused(served, request, 400, "malformed_http")


@pytest.mark.parametrize(
    "host",
    [
        b"",
        b"a",
        b"a.b:80",
        b"a_b-c.",
        b"127.0.0.1:8080",
        b"[::1]:80",
        b"[::ffff:127.0.0.1]",
        b"xn--4ca",
        b"a%20b",
        b"a:",
    ],
)
async def test_every_form_of_a_host_is_taken(served: Served, host: bytes) -> None:
    client = await served.connect()
    for _ in range(2):
        await client.send(b"POST /v1/echo HTTP/1.1\r\nHost:" + host + b"\r\nContent-Length: 1\r\n\r\nx")
        assert (await client.answer()).status == 200


@pytest.mark.parametrize(
    "target", [b"*", b"/v1/echo#a", b"/cold#", b"http://u@x/v1/echo", b"ftp://x/cold", b"http:///x"]
)
async def test_a_target_of_none_of_the_forms_is_a_400(served: Served, target: bytes) -> None:
    request = b"POST " + target + b" HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
    await refused(served, request, 400, "malformed_http")


@pytest.mark.parametrize(
    ("target", "seen"),
    [(b"http://x", b"/ "), (b"http://x?y", b"/ y"), (b"HTTPS://x:1/cold?y", b"/cold y"), (b"*", b"* ")],
)
async def test_the_server_as_a_whole_and_a_full_url_can_be_asked(served: Served, target: bytes, seen: bytes) -> None:
    client = await served.connect()
    await client.send(b"OPTIONS " + target + b" HTTP/1.1\r\nHost: x\r\n\r\n")
    assert (await client.answer()).headers["x-seen"] == f"OPTIONS {seen.decode()} host"


@pytest.mark.parametrize("coding", [b"gzip, chunked", b",chunked", b"identity, chunked"])
async def test_another_transfer_coding_than_chunked_is_a_415(served: Served, coding: bytes) -> None:
    request = HEAD + b"Transfer-Encoding: " + coding + b"\r\n\r\n0\r\n\r\n"
    await refused(served, request, 415, "unsupported_content_encoding")


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


async def test_a_cold_body_in_bad_chunks_is_a_400(served: Served) -> None:
    client = await served.connect()
    await client.send(b"POST /cold HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd")
    assert (await client.answer()).status == 400
    assert await client.closed()


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


@pytest.mark.parametrize("path", ["/v1/echo", "/cold"])
async def test_an_offer_of_http_2_is_declined_and_the_body_read(served: Served, path: str) -> None:
    client = await served.connect()
    offer = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAEAAEAAAAIAAAAB")
    await client.send(post(path, b"one", *offer) + post(path, b"two", *offer)[:-1])
    assert (await client.answer()).body == b"one"
    await client.send(b"o")
    assert (await client.answer()).body == b"two"


async def test_an_offer_does_not_change_the_version_of_a_request(served: Served) -> None:
    client = await served.connect()
    offer = b"Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 1\r\n\r\n2"
    await client.send(b"POST /v1/stream HTTP/1.0\r\n" + offer)
    answer = await client.answer()
    assert "transfer-encoding" not in answer.headers
    assert answer.body == b"data: 0\n\ndata: 1\n\n"


async def test_an_offer_without_a_version_is_a_400(served: Served) -> None:
    request = b"POST /HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 1\r\n\r\n2"
    await refused(served, request, 400, "malformed_http")


async def test_a_cold_upgrade_is_declined_by_answering(served: Served) -> None:
    client = await served.connect()
    await client.send(b"GET /cold HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
    assert (await client.answer()).headers["x-cold"] == "yes"


@pytest.mark.parametrize("target", [b"/v1/echo", b"/cold", b"elsewhere:443"])
@pytest.mark.parametrize("host", [b"Host: x\r\n", b""])
async def test_connect_is_refused(served: Served, target: bytes, host: bytes, caplog: pytest.LogCaptureFixture) -> None:
    await refused(
        served, b"CONNECT " + target + b" HTTP/1.1\r\n" + host + b"\r\nPOST /v1/echo", 405, "method_not_allowed"
    )
    assert caplog.records == []


async def test_a_refused_head_request_gets_no_body(served: Served) -> None:
    client = await served.connect()
    await client.send(b"HEAD /cold HTTP/1.1\r\n\r\n")
    answer = await client.answer(head_request=True)
    assert (answer.status, answer.headers["connection"]) == (400, "close")
    assert "transfer-encoding" not in answer.headers
    assert await client.closed()


@pytest.mark.parametrize("target", [b"http://elsewhere/v1/echo", b"https://gateway:1/v1/echo?x"])
async def test_a_full_url_is_matched_by_its_path(served: Served, target: bytes) -> None:
    client = await served.connect()
    await client.send(b"POST " + target + b" HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx")
    assert (await client.answer()).headers["x-path"] == "/v1/echo"


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
    async def large(exchange: object) -> None:
        exchange.respond(200, b"", bytes(40_000_000))  # type: ignore[attr-defined]

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


async def test_no_line_is_logged_for_what_clients_do_wrong(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    for request in (b"nonsense\r\n\r\n", b"GET /\xff HTTP/1.1\r\n\r\n", HEAD + b"Content-Length: x\r\n\r\n"):
        client: RawClient = await served.connect()
        await client.send(request)
        assert (await client.answer()).status == 400
    assert caplog.records == []
