"""Pushing a body into a sink: when it comes, in what pieces, and how far the upstream may run ahead."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from adapters.errors import ProviderError
from gateway.upstream.base import RequestHead, Upstream
from gateway.upstream.http1 import Http1Upstream
from tests.fakes.body_sink import CollectingSink
from tests.fakes.scripted_server import (
    LAST_CHUNK,
    Flood,
    Hang,
    RecordedRequest,
    Script,
    ScriptedServer,
    Sleep,
    answer,
    chunk,
    chunked_head,
)

Heads = Callable[..., RequestHead]

# The kernel's socket buffers on both sides can take several megabytes before the sender notices that nobody reads.
KERNEL_BYTES = 16 * 1024 * 1024


async def test_pieces_come_as_they_arrive(upstream: Upstream, head_for: Heads) -> None:
    async with ScriptedServer([chunked_head(), chunk(b"one"), Hang()]) as server:
        response = await upstream.send(head_for(server), b"{}")
        sink = CollectingSink()
        response.stream(sink)
        await sink.wait_for_bytes(3)
        assert sink.data == b"one"
        assert sink.ends == []
        response.close()


async def test_what_came_before_streaming_is_pushed_at_once(http1: Http1Upstream, head_for: Heads) -> None:
    async with ScriptedServer([chunked_head() + chunk(b"one") + chunk(b"two"), Sleep(0.05), LAST_CHUNK]) as server:
        response = await http1.send(head_for(server), b"{}")
        sink = CollectingSink()
        response.stream(sink)
        assert sink.data == b"onetwo"
        assert await sink.wait_for_end() is None


async def test_the_chunks_of_one_read_are_fed_together(http1: Http1Upstream, head_for: Heads) -> None:
    async with ScriptedServer([chunked_head(), Sleep(0.05), chunk(b"one") + chunk(b"two") + LAST_CHUNK]) as server:
        response = await http1.send(head_for(server), b"{}")
        sink = CollectingSink()
        response.stream(sink)
        assert await sink.wait_for_end() is None
        assert sink.pieces == [b"onetwo"]


async def test_a_connection_is_free_again_when_its_stream_ends(http1: Http1Upstream, head_for: Heads) -> None:
    class Reusing(CollectingSink):
        def finish(self, error: ProviderError | None) -> None:
            idle_at_the_end.append(http1.stats()[f"http://127.0.0.1:{server.port}"].idle)
            super().finish(None)

    idle_at_the_end: list[int] = []
    async with ScriptedServer([chunked_head(), chunk(b"hello"), LAST_CHUNK]) as server:
        for _ in range(3):
            response = await http1.send(head_for(server), b"{}")
            sink = Reusing()
            response.stream(sink)
            await sink.wait_for_end()
        assert server.connections == 1
        assert idle_at_the_end == [1, 1, 1]


async def test_a_paused_stream_stops_the_upstream_and_goes_on_when_resumed(upstream: Upstream, head_for: Heads) -> None:
    piece = bytes(64 * 1024)
    total = 48 * 1024 * 1024
    async with ScriptedServer(
        [b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % total, Flood(piece, total)]
    ) as server:
        response = await upstream.send(head_for(server), b"{}")
        sink = CollectingSink()
        response.stream(sink)
        await sink.wait_for_bytes(1)
        response.pause()
        await asyncio.sleep(0.02)
        given = len(sink.data)
        await _until_the_sender_stops(server)
        assert server.sent_bytes < total
        assert server.sent_bytes - given < KERNEL_BYTES
        assert len(sink.data) <= given + 256 * 1024, "only what was in flight may still come"
        response.resume()
        assert await sink.wait_for_end(20) is None
        assert len(sink.data) == total


async def test_a_sink_may_pause_while_it_is_fed(upstream: Upstream, head_for: Heads) -> None:
    class Pausing(CollectingSink):
        def feed(self, data: bytes) -> None:
            super().feed(data)
            response.pause()
            asyncio.get_running_loop().call_later(0.01, response.resume)

    total = 2 * 1024 * 1024
    async with ScriptedServer([answer(bytes(total))]) as server:
        response = await upstream.send(head_for(server), b"{}")
        sink = Pausing()
        response.stream(sink)
        assert await sink.wait_for_end(20) is None
        assert len(sink.data) == total


async def test_an_answer_nobody_reads_yet_does_not_fill_the_memory(upstream: Upstream, head_for: Heads) -> None:
    piece, total = bytes(64 * 1024), 48 * 1024 * 1024
    async with ScriptedServer([b"HTTP/1.1 200 OK\r\n\r\n", Flood(piece, total), Hang()]) as server:
        response = await upstream.send(head_for(server), b"{}")
        await _until_the_sender_stops(server)
        assert server.sent_bytes < KERNEL_BYTES
        response.close()
        await server.wait_until(lambda s: s.open_connections == 0)


async def test_a_stream_that_starts_late_gets_everything(upstream: Upstream, head_for: Heads) -> None:
    total = 24 * 1024 * 1024
    async with ScriptedServer(_long_answer(total)) as server:
        response = await upstream.send(head_for(server), b"{}")
        await _until_the_sender_stops(server)
        sink = CollectingSink()
        response.stream(sink)
        assert await sink.wait_for_end(20) is None
        assert len(sink.data) == total


async def test_reading_late_gets_everything(upstream: Upstream, head_for: Heads) -> None:
    total = 24 * 1024 * 1024
    async with ScriptedServer(_long_answer(total)) as server:
        response = await upstream.send(head_for(server), b"{}")
        await _until_the_sender_stops(server)
        assert len(await response.read(total)) == total


async def test_a_stream_paused_before_it_starts_waits(upstream: Upstream, head_for: Heads) -> None:
    async with ScriptedServer([chunked_head(), Sleep(0.02), chunk(b"hello"), LAST_CHUNK]) as server:
        response = await upstream.send(head_for(server), b"{}")
        sink = CollectingSink()
        response.pause()
        response.stream(sink)
        await asyncio.sleep(0.1)
        assert sink.pieces == []
        response.resume()
        assert await sink.wait_for_end() is None
        assert sink.data == b"hello"


async def test_two_hundred_streams_at_once_stay_apart(upstream: Upstream, head_for: Heads) -> None:
    def script(request: RecordedRequest) -> Script:
        name = request.body
        return [chunked_head(), *(chunk(name) for _ in range(5)), Sleep(0.01), chunk(name), LAST_CHUNK]

    async with ScriptedServer(script) as server:

        async def one(name: bytes) -> None:
            response = await upstream.send(head_for(server), name)
            sink = CollectingSink()
            response.stream(sink)
            assert await sink.wait_for_end(30) is None
            assert sink.data == name * 6

        await asyncio.gather(*(one(b"<%d>" % number) for number in range(200)))


def _long_answer(total_bytes: int) -> Script:
    return [b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % total_bytes, Flood(bytes(64 * 1024), total_bytes)]


async def _until_the_sender_stops(server: ScriptedServer) -> None:
    """Return when the server has not been able to send anything for a while."""
    sent = -1
    async with asyncio.timeout(20):
        while sent != server.sent_bytes or sent == 0:
            sent = server.sent_bytes
            await asyncio.sleep(0.15)
