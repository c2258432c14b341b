"""Cancelling or closing at any point frees the upstream at once, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Callable

import pytest

from adapters.errors import ProviderError
from gateway.upstream.base import RequestHead, Upstream
from gateway.upstream.connection import Connection
from gateway.upstream.http1 import Http1Upstream
from tests.fakes.body_sink import CollectingSink
from tests.fakes.scripted_server import Hang, Reset, ScriptedServer, Sleep, answer, chunk, chunked_head

Heads = Callable[..., RequestHead]

# The requirement is 250 ms; a loaded test machine gets some more.
SOON_SECONDS = 1.0

BEFORE_THE_HEAD = {
    "nothing came": (Hang(),),
    "100 came": (b"HTTP/1.1 100 Continue\r\n\r\n", Hang()),
    "half a head came": (b"HTTP/1.1 200 OK\r\ncontent-", Hang()),
}


@pytest.mark.parametrize("script", BEFORE_THE_HEAD.values(), ids=BEFORE_THE_HEAD.keys())
async def test_cancelling_send_closes_the_connection(upstream: Upstream, head_for: Heads, script: tuple) -> None:
    async with ScriptedServer(script) as server:
        task = asyncio.ensure_future(upstream.send(head_for(server), b"{}"))
        await server.wait_until(lambda s: len(s.requests) == 1)
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.wait_until(lambda s: s.open_connections == 0, SOON_SECONDS)


async def test_cancelling_send_during_a_large_upload_closes_the_connection(upstream: Upstream, head_for: Heads) -> None:
    async with ScriptedServer([Sleep(0.2), Hang()], read_body=False) as server:
        task = asyncio.ensure_future(upstream.send(head_for(server), bytes(32 * 1024 * 1024)))
        await server.wait_until(lambda s: len(s.requests) == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.wait_until(lambda s: s.open_connections == 0, SOON_SECONDS)


async def test_cancelling_read_closes_the_connection(upstream: Upstream, head_for: Heads) -> None:
    async with ScriptedServer([b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhel", Hang()]) as server:
        response = await upstream.send(head_for(server), b"{}")
        task = asyncio.ensure_future(response.read(100))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.wait_until(lambda s: s.open_connections == 0, SOON_SECONDS)


async def test_closing_a_response_nobody_read_closes_the_connection(upstream: Upstream, head_for: Heads) -> None:
    async with ScriptedServer([chunked_head(), Hang()]) as server:
        response = await upstream.send(head_for(server), b"{}")
        response.close()
        response.close()
        await server.wait_until(lambda s: s.open_connections == 0, SOON_SECONDS)


async def test_closing_a_stream_closes_the_connection_and_silences_the_sink(
    upstream: Upstream, head_for: Heads
) -> None:
    async with ScriptedServer([chunked_head(), chunk(b"hello"), Hang()]) as server:
        response = await upstream.send(head_for(server), b"{}")
        sink = CollectingSink()
        response.stream(sink)
        await sink.wait_for_bytes(5)
        response.close()
        await server.wait_until(lambda s: s.open_connections == 0, SOON_SECONDS)
        await asyncio.sleep(0.02)
        assert sink.ends == []


async def test_a_sink_may_close_its_response_while_it_is_fed(upstream: Upstream, head_for: Heads) -> None:
    class Refusing(CollectingSink):
        def feed(self, data: bytes) -> None:
            super().feed(data)
            response.close()

    async with ScriptedServer([chunked_head(), chunk(b"hello"), Sleep(0.02), chunk(b"more"), Hang()]) as server:
        response = await upstream.send(head_for(server), b"{}")
        sink = Refusing()
        response.stream(sink)
        await server.wait_until(lambda s: s.open_connections == 0, SOON_SECONDS)
        assert sink.data == b"hello"
        assert sink.ends == []


async def test_a_response_closed_late_does_not_touch_the_next_request(upstream: Upstream, head_for: Heads) -> None:
    async with ScriptedServer([answer(b"hello")]) as server:
        first = await upstream.send(head_for(server), b"{}")
        await first.read(100)
        second = await upstream.send(head_for(server), b"{}")
        first.close()
        assert await second.read(100) == b"hello"


async def test_a_thousand_broken_off_requests_leave_nothing_behind(http1: Http1Upstream, head_for: Heads) -> None:
    scripts = [(Hang(),), (chunked_head(), Hang()), (chunked_head(), chunk(b"x"), Hang()), (Reset(),)]
    gc.collect()
    gc.disable()
    try:
        async with ScriptedServer(lambda request: scripts[request.number % len(scripts)]) as server:
            head = head_for(server)
            tasks_before = len(asyncio.all_tasks())

            async def broken_off() -> None:
                with contextlib.suppress(TimeoutError, ProviderError):
                    async with asyncio.timeout(0.2):
                        response = await http1.send(head, b"{}")
                        await response.read(100)
                        raise AssertionError("no request here gets a whole answer")

            for _ in range(10):
                await asyncio.gather(*(broken_off() for _ in range(100)))
            assert len(server.requests) == 1000
            await server.wait_until(lambda s: s.open_connections == 0)
            await asyncio.sleep(0.05)
            stats = http1.stats()[f"http://127.0.0.1:{server.port}"]
            assert (stats.open, stats.idle, stats.in_use) == (0, 0, 0)
            assert len(asyncio.all_tasks()) <= tasks_before
            # Without the collector: what is still alive here would pile up in a busy gateway.
            assert sum(isinstance(thing, Connection) for thing in gc.get_objects()) <= 5
    finally:
        gc.enable()


async def test_aclose_drops_what_is_open(upstream: Upstream, head_for: Heads) -> None:
    async with ScriptedServer([chunked_head(), chunk(b"hello"), Hang()]) as server:
        response = await upstream.send(head_for(server), b"{}")
        sink = CollectingSink()
        response.stream(sink)
        await sink.wait_for_bytes(5)
        await upstream.aclose()
        await server.wait_until(lambda s: s.open_connections == 0, SOON_SECONDS)
