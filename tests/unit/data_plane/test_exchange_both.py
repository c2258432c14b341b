"""What both exchanges promise, shown on a real server with raw sockets: answers, streams, and clients that leave."""

from __future__ import annotations

import asyncio

import pytest

from gateway.data_plane.exchange import Exchange
from tests.fakes.fake_plane import Served
from tests.fakes.raw_client import post


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
