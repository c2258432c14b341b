"""What both exchanges promise, shown on a real server with raw sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from gateway.data_plane.exchange import Exchange
from gateway.data_plane.limits import WireLimits
from tests.fakes.fake_plane import IMPLEMENTATIONS, Served, serve_plane
from tests.fakes.raw_client import post

LIMITS = WireLimits(
    max_body_bytes=100_000, body_seconds=0.4, progress_bytes=20_000, write_stall_seconds=0.6, buffer_bytes=64 * 1024
)


@pytest.fixture(params=IMPLEMENTATIONS)
async def served(request: pytest.FixtureRequest) -> AsyncIterator[Served]:
    async with serve_plane(request.param, LIMITS) as served:
        yield served


async def test_a_plain_answer_echoes_the_request(served: Served) -> None:
    client = await served.connect()
    await client.send(post("/v1/echo", b'{"a":1}', "X-Thing: Yes"))
    answer = await client.answer()
    assert (answer.status, answer.body) == (200, b'{"a":1}')
    assert answer.headers["x-peer"] == "127.0.0.1"
    assert answer.headers["x-names"] == "host,content-length,x-thing"
    assert "date" in answer.headers
    assert "connection" not in answer.headers


async def test_a_connection_is_used_again(served: Served) -> None:
    client = await served.connect()
    for number in range(5):
        await client.send(post("/v1/echo", b"%d" % number))
        assert (await client.answer()).body == b"%d" % number


async def test_a_body_in_pieces_arrives_whole(served: Served) -> None:
    client = await served.connect()
    request = post("/v1/echo", b"x" * 3000)
    for start in range(0, len(request), 701):
        await client.send(request[start : start + 701])
        await asyncio.sleep(0.002)
    assert (await client.answer()).body == b"x" * 3000


async def test_a_chunked_body_arrives_whole(served: Served) -> None:
    client = await served.connect()
    await client.send(b"POST /v1/echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n")
    await client.send(b"0\r\nX-Trailer: no header\r\n\r\n")
    answer = await client.answer()
    assert answer.body == b"abcde"
    # Stock uvicorn takes trailers for headers when they arrive together.
    assert not served.wire or answer.headers["x-names"] == "host,transfer-encoding"


async def test_a_stream_comes_in_the_pieces_it_was_written_in(served: Served) -> None:
    client = await served.connect()
    await client.send(post("/v1/stream", b"3"))
    answer = await client.answer()
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.chunks == [b"data: 0\n\n", b"data: 1\n\n", b"data: 2\n\n"]
    await client.send(post("/v1/echo", b"again"))
    assert (await client.answer()).body == b"again"


async def test_an_aborted_stream_is_seen_as_cut(served: Served) -> None:
    client = await served.connect()
    await client.send(post("/v1/abort", b""))
    answer = await client.answer()
    assert answer.status == 200
    assert not answer.complete


async def test_an_aborted_stream_does_not_cancel_its_handler(served: Served) -> None:
    client = await served.connect()
    await client.send(post("/v1/abort", b""))
    await client.answer()
    await served.plane.ended("abort")
    assert served.plane.cancelled == []


async def test_a_handler_that_fails_is_a_500_in_json(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    client = await served.connect()
    await client.send(post("/v1/fail", b"", "X-Request-Id: mine-1"))
    answer = await client.answer()
    assert answer.status == 500
    assert answer.error["code"] == "internal_error"
    assert answer.error["request_id"] == answer.headers["x-request-id"] == "mine-1"
    assert "the handler of POST /v1/fail failed" in caplog.text


async def test_a_handler_that_forgets_to_answer_is_a_500(served: Served) -> None:
    client = await served.connect()
    await client.send(post("/v1/forget", b""))
    assert (await client.answer()).status == 500


async def test_a_handler_that_fails_in_a_stream_cuts_it(served: Served) -> None:
    client = await served.connect()
    await client.send(post("/v1/fail-late", b""))
    assert not (await client.answer()).complete


@pytest.mark.parametrize("path", ["/v1/wait", "/v1/endless"])
@pytest.mark.parametrize("way", ["close", "reset", "half-close"])
async def test_a_client_that_leaves_cancels_the_handler(served: Served, path: str, way: str) -> None:
    # A busy machine is late now and then; a timer would be late each time.
    assert min([await _seconds_until_cancelled(served, path, way) for _ in range(4)]) < 0.25


async def _seconds_until_cancelled(served: Served, path: str, way: str) -> float:
    served.plane.forget_past()
    client = await served.connect()
    await client.send(post(path, b""))
    await served.plane.began(path)
    before = asyncio.get_running_loop().time()
    match way:
        case "close":
            await client.close()
        case "reset":
            client.reset()
        case "half-close":
            client.writer.write_eof()
    await served.plane.ended(path)
    assert served.plane.cancelled == ["the client left"]
    return asyncio.get_running_loop().time() - before


async def test_a_client_that_leaves_after_its_answer_does_not_cancel_the_handler(served: Served) -> None:
    client = await served.connect()
    await client.send(post("/v1/settle-late", b""))
    assert (await client.answer()).status == 200
    await client.close()
    await served.plane.ended("/v1/settle-late")
    assert served.plane.cancelled == []


async def test_a_slow_reader_pauses_the_handler_and_lets_it_go_on(served: Served) -> None:
    client = await served.connect(receive_buffer=65536, limit=65536)
    await client.send(post("/v1/flood", b"200"))
    await served.plane.wait_for(lambda: served.plane.flow == [True])
    written = served.plane.written
    await asyncio.sleep(0.1)
    assert served.plane.written == written
    answer = await client.answer()
    assert answer.complete
    assert len(answer.body) == 200 * 65536
    assert served.plane.flow[:2] == [True, False]


async def test_a_client_that_takes_nothing_for_too_long_is_dropped(served: Served) -> None:
    client = await served.connect(receive_buffer=4096, limit=4096)
    await client.send(post("/v1/flood", b"1000"))
    await served.plane.ended("/v1/flood")
    assert served.plane.cancelled == ["the client left"]
    assert not (await client.answer()).complete


async def test_a_client_that_reads_slowly_but_steadily_is_not_dropped(served: Served) -> None:
    client = await served.connect(receive_buffer=65536, limit=65536)
    await client.send(post("/v1/flood", b"120"))
    await client.head()
    received = 0
    # Twice the stall limit in all, and never half of it without reading.
    for _ in range(12):
        await asyncio.sleep(0.1)
        for _ in range(8):
            received += len(await client.chunk())
    while chunk := await client.chunk():
        received += len(chunk)
    assert received == 120 * 65536


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


async def test_while_draining_each_answer_closes_its_connection(served: Served) -> None:
    client, other = await served.connect(), await served.connect()
    served.plane.draining = True
    await client.send(post("/v1/echo", b"x"))
    assert (await client.answer()).headers["connection"] == "close"
    assert await client.closed()
    await other.send(post("/v1/stream", b"2"))
    answer = await other.answer()
    assert (answer.headers["connection"], len(answer.chunks)) == ("close", 2)
    assert await other.closed()


async def test_a_cancelled_handler_that_has_not_answered_is_answered_for(served: Served) -> None:
    client = await served.connect()
    await client.send(post("/v1/wait", b""))
    await served.plane.began("/v1/wait")
    served.plane.draining = True
    served.plane.cancel_all("shutting down")
    answer = await client.answer()
    assert (answer.status, answer.error["code"]) == (503, "draining")


async def test_sending_after_the_client_left_does_nothing(served: Served) -> None:
    seen: list[Exchange] = []

    async def handler(exchange: Exchange) -> None:
        seen.append(exchange)
        try:
            await asyncio.Event().wait()
        finally:
            exchange.start(200, b"")
            exchange.write(b"x")
            exchange.end()
            exchange.abort()

    served.plane.routes["/v1/stubborn"] = handler
    client = await served.connect()
    await client.send(post("/v1/stubborn", b""))
    await served.plane.wait_for(lambda: bool(seen))
    client.reset()
    await served.plane.ended("/v1/stubborn")


async def test_shutdown_waits_for_a_stream_and_then_closes(served: Served) -> None:
    client = await served.connect()
    await client.send(post("/v1/stream", b"20"))
    await client.head()
    await client.chunk()
    served.loopback.server.should_exit = True
    chunks = 1
    while await client.chunk():
        chunks += 1
    assert chunks == 20
    assert await client.closed()
