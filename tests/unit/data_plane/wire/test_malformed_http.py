"""What two readers could understand differently is refused: lines, lengths, chunks, hosts, targets."""

from __future__ import annotations

import asyncio
import logging

import pytest

from tests.fakes.fake_plane import Served
from tests.fakes.raw_client import RawClient
from tests.unit.data_plane.wire.refused import CHUNKED, HEAD, refused


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
        CHUNKED + b"0\r\nX: y\r\nConnection: close\r\n\r\n",
        CHUNKED + b"0\r\nproxy-connection: keep-alive\r\n\r\n",
        CHUNKED + b"0\r\nTransfer-Encoding: chunked\r\n\r\n",
        CHUNKED + b"0\r\nUpgrade: h2c\r\n\r\n",
        b"POST /cold HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nConnection: close\r\n\r\n",
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


async def test_a_cold_body_in_bad_chunks_is_a_400(served: Served) -> None:
    client = await served.connect()
    await client.send(b"POST /cold HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd")
    assert (await client.answer()).status == 400
    assert await client.closed()


async def test_a_client_that_asks_and_sends_bad_chunks_at_once_reads_the_400_and_nothing_behind_it(
    served: Served,
) -> None:
    """The request that was taken back must not ask for its body any more: the answer is the last that is written."""
    client = await served.connect()
    head = b"POST /cold HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n"
    await client.send(head + b"zz\r\n")
    for _ in range(3):
        await asyncio.sleep(0.02)
        await client.send(bytes(2_000))  # it is still listened to

    assert (await client.answer()).status == 400
    assert await client.closed()


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


async def test_no_line_is_logged_for_what_clients_do_wrong(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    for request in (b"nonsense\r\n\r\n", b"GET /\xff HTTP/1.1\r\n\r\n", HEAD + b"Content-Length: x\r\n\r\n"):
        client: RawClient = await served.connect()
        await client.send(request)
        assert (await client.answer()).status == 400
    assert caplog.records == []
