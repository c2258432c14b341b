"""Cancelling or closing at any point frees the upstream at once, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable

import pytest

from adapters.errors import ProviderError
from adapters.types import FailureKind
from gateway.upstream.base import RequestHead, Upstream
from gateway.upstream.connection import Connection
from gateway.upstream.http1 import Http1Upstream
from tests.fakes.body_sink import CollectingSink
from tests.fakes.scripted_server import Hang, Reset, Script, ScriptedServer, Sleep, answer, chunk, chunked_head

Heads = Callable[..., RequestHead]

# The requirement is 250 ms; a loaded test machine gets some more.
SOON_SECONDS = 1.0

BEFORE_THE_HEAD = {
    "nothing came": (Hang(),),
    "100 came": (b"HTTP/1.1 100 Continue\r\n\r\n", Hang()),
    "half a head came": (b"HTTP/1.1 200 OK\r\ncontent-", Hang()),
}


@pytest.mark.parametrize("script", BEFORE_THE_HEAD.values(), ids=BEFORE_THE_HEAD.keys())
async def test_cancelling_send_closes_the_connection(upstream: Upstream, head_for: Heads, script: Script) -> None:
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


@pytest.mark.parametrize(
    ("script", "idle"),
    [((answer(b"hello"),), 1), ((chunked_head(), Hang()), 0)],
    ids=["whole", "not whole"],
)
async def test_cancelling_send_just_when_the_head_has_come_loses_no_connection(
    http1: Http1Upstream, head_for: Heads, script: Script, idle: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The head is parsed and the task is about to be told, when the cancellation overtakes it."""
    receive = Connection.data_received

    def receive_and_cancel(connection: Connection, data: bytes) -> None:
        receive(connection, data)
        task.cancel()

    monkeypatch.setattr(Connection, "data_received", receive_and_cancel)
    async with ScriptedServer(script) as server:
        task = asyncio.ensure_future(http1.send(head_for(server), b"{}"))
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.wait_until(lambda s: s.open_connections == idle, SOON_SECONDS)
        stats = http1.stats()[f"http://127.0.0.1:{server.port}"]
        assert (stats.open, stats.idle) == (idle, idle)


async def test_a_response_given_up_cannot_be_read_as_if_it_were_whole(http1: Http1Upstream, head_for: Heads) -> None:
    async with ScriptedServer([chunked_head(), chunk(b"hello"), Hang()]) as server:
        response = await http1.send(head_for(server), b"{}")
        response.close()
        with pytest.raises(ProviderError) as caught:
            await response.read(100)
        assert caught.value.kind is FailureKind.INTERRUPTED


async def test_a_thousand_broken_off_requests_leave_nothing_behind(http1: Http1Upstream, head_for: Heads) -> None:
    scripts = [(Hang(),), (chunked_head(), Hang()), (chunked_head(), chunk(b"x"), Hang()), (Reset(),)]
    gc.collect()
    gc.disable()
    try:
        async with ScriptedServer(lambda request: scripts[request.number % len(scripts)]) as server:
            head = head_for(server)
            tasks_before = len(asyncio.all_tasks())

            async def ask() -> bytes:
                response = await http1.send(head, b"{}")
                return await response.read(100)

            for number in range(1, 11):
                requests = [asyncio.ensure_future(ask()) for _ in range(100)]
                await server.wait_until(lambda s: len(s.requests) == number * 100, 30)  # noqa: B023
                await asyncio.sleep(0.02)
                for request in requests:
                    request.cancel()
                ends = await asyncio.gather(*requests, return_exceptions=True)
                assert all(isinstance(end, asyncio.CancelledError | ProviderError) for end in ends)
                del requests, ends
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
