"""Which connection a request gets: the last one used, a new one, or none; and what happens when it proves dead."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from adapters.errors import ProviderError
from adapters.types import FailureKind
from gateway.deadlines import Deadlines
from gateway.upstream import pool
from gateway.upstream.base import Counts, RequestHead, Upstream
from gateway.upstream.http1 import Http1Upstream
from gateway.upstream.httpx_client import HttpxUpstream
from gateway.upstream.pool import PoolStats
from tests.fakes.scripted_server import Close, Hang, RecordedRequest, Reset, Script, ScriptedServer, Sleep, answer

Heads = Callable[..., RequestHead]


class Sent:
    sent = False
    counts: Counts | None = None


async def _ask(upstream: Upstream, head: RequestHead) -> bytes:
    response = await upstream.send(head, b"{}")
    return await response.read(100)


async def test_the_connection_used_last_is_used_next(http1: Http1Upstream, head_for: Heads) -> None:
    async with ScriptedServer([Sleep(0.05), answer()]) as server:
        head = head_for(server)
        await asyncio.gather(*(_ask(http1, head) for _ in range(3)))
        assert server.connections == 3
        await _ask(http1, head)
        last = server.requests[-1].connection
        for _ in range(3):
            await _ask(http1, head)
            assert server.requests[-1].connection == last
        assert server.connections == 3


async def test_stats_count_by_origin(http1: Http1Upstream, head_for: Heads) -> None:
    async with ScriptedServer([answer()]) as fast, ScriptedServer([Hang()]) as silent:
        await _ask(http1, head_for(fast))
        task = asyncio.ensure_future(_ask(http1, head_for(silent)))
        await silent.wait_until(lambda s: len(s.requests) == 1)
        assert http1.stats() == {
            f"http://127.0.0.1:{fast.port}": PoolStats(open=1, idle=1, in_use=0),
            f"http://127.0.0.1:{silent.port}": PoolStats(open=1, idle=0, in_use=1),
        }
        task.cancel()


async def test_equal_origins_share_connections(upstream: Upstream, head_for: Heads) -> None:
    async with ScriptedServer() as server:
        await _ask(upstream, head_for(server))
        await _ask(upstream, head_for(server))
        assert server.connections == 1


async def test_an_idle_connection_is_closed_after_its_time_and_the_timer_rests(head_for: Heads) -> None:
    deadlines = Deadlines(tick_seconds=0.02)
    upstream = Http1Upstream(deadlines, keep_idle_seconds=0.1)
    async with ScriptedServer() as server:
        await _ask(upstream, head_for(server))
        assert len(deadlines) == 1
        await server.wait_until(lambda s: s.open_connections == 0)
        async with asyncio.timeout(5):
            while len(deadlines):
                await asyncio.sleep(0.02)
        assert upstream.stats() == {}
        await _ask(upstream, head_for(server))
        assert len(deadlines) == 1
    await upstream.aclose()
    deadlines.close()


async def test_a_connection_in_use_is_not_closed_by_time(head_for: Heads) -> None:
    deadlines = Deadlines(tick_seconds=0.02)
    upstream = Http1Upstream(deadlines, keep_idle_seconds=0.05)
    async with ScriptedServer([Sleep(0.4), answer(b"hello")]) as server:
        assert await _ask(upstream, head_for(server)) == b"hello"
    await upstream.aclose()
    deadlines.close()


async def test_a_connection_the_server_closed_is_passed_over(upstream: Upstream, head_for: Heads) -> None:
    async with ScriptedServer([answer(b"hello"), Close()]) as server:
        for number in range(1, 4):
            assert await _ask(upstream, head_for(server)) == b"hello"
            await server.wait_until(lambda s: s.open_connections == 0)
            await asyncio.sleep(0.01)
            assert server.connections == number
        assert len(server.requests) == 3


@pytest.mark.parametrize("ending", [Close(), Reset()], ids=["closed", "reset"])
async def test_a_request_met_by_a_closing_connection_is_sent_once_more(
    http1: Http1Upstream, head_for: Heads, ending: Close | Reset
) -> None:
    """The server takes the second request of its first connection, and closes instead of answering."""

    def script(request: RecordedRequest) -> Script:
        return [ending] if request.connection == 1 and request.number == 2 else [answer(b"hello")]

    async with ScriptedServer(script) as server:
        for _ in range(2):
            assert await _ask(http1, head_for(server)) == b"hello"
        assert [request.connection for request in server.requests] == [1, 1, 2]


@pytest.mark.parametrize("ending", [Close(), Reset()], ids=["closed", "reset"])
async def test_a_request_that_meets_no_answer_is_not_sent_for_ever(
    upstream: Upstream, implementation: str, head_for: Heads, ending: Close | Reset
) -> None:
    """Once more by our own client. Not by httpx2: it does not tell whether anything came back."""
    async with ScriptedServer(lambda request: [answer()] if request.number == 1 else [ending]) as server:
        await _ask(upstream, head_for(server))
        sent = Sent()
        with pytest.raises(ProviderError) as caught:
            await upstream.send(head_for(server), b"{}", sending=sent)
        assert caught.value.kind is FailureKind.RESET
        assert caught.value.sent
        assert sent.sent
        assert len(server.requests) == (3 if implementation == "http1" else 2)


async def test_a_request_is_not_sent_again_once_anything_came_back(upstream: Upstream, head_for: Heads) -> None:
    def script(request: RecordedRequest) -> Script:
        return [answer()] if request.number == 1 else [b"HTTP/1.1 2", Close()]

    async with ScriptedServer(script) as server:
        await _ask(upstream, head_for(server))
        with pytest.raises(ProviderError) as caught:
            await _ask(upstream, head_for(server))
        assert caught.value.kind is FailureKind.RESET
        assert len(server.requests) == 2


async def test_a_full_pool_makes_the_next_request_wait_for_a_connection(head_for: Heads) -> None:
    deadlines = Deadlines()
    upstream = Http1Upstream(deadlines, max_connections_per_origin=2)
    async with ScriptedServer([Sleep(0.05), answer(b"hello")]) as server:
        head = head_for(server)
        assert await asyncio.gather(*(_ask(upstream, head) for _ in range(8))) == [b"hello"] * 8
        assert server.connections == 2
    await upstream.aclose()
    deadlines.close()


async def test_a_place_left_by_a_cancelled_request_goes_to_the_next(head_for: Heads) -> None:
    deadlines = Deadlines()
    upstream = Http1Upstream(deadlines, max_connections_per_origin=1)
    async with ScriptedServer(lambda request: [Hang()] if request.number == 1 else [answer(b"hello")]) as server:
        head = head_for(server)
        blocking = asyncio.ensure_future(_ask(upstream, head))
        await server.wait_until(lambda s: len(s.requests) == 1)
        waiting = [asyncio.ensure_future(_ask(upstream, head)) for _ in range(3)]
        await asyncio.sleep(0.02)
        waiting[0].cancel()
        blocking.cancel()
        assert await asyncio.gather(*waiting[1:]) == [b"hello"] * 2
    await upstream.aclose()
    deadlines.close()


@pytest.mark.parametrize("implementation", ["http1", "httpx"])
async def test_a_pool_that_stays_full_is_no_capacity_and_nothing_was_sent(
    head_for: Heads, implementation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "WAIT_SECONDS", 0.1)
    monkeypatch.setattr("gateway.upstream.httpx_client.WAIT_SECONDS", 0.1)
    deadlines = Deadlines()
    upstream: Upstream
    if implementation == "http1":
        upstream = Http1Upstream(deadlines, max_connections_per_origin=1)
    else:
        upstream = HttpxUpstream(max_connections_per_origin=1)
    async with ScriptedServer([Hang()]) as server:
        head = head_for(server)
        blocking = asyncio.ensure_future(_ask(upstream, head))
        await server.wait_until(lambda s: len(s.requests) == 1)
        sent = Sent()
        with pytest.raises(ProviderError) as caught:
            await upstream.send(head, b"{}", sending=sent)
        assert caught.value.kind is FailureKind.NO_CAPACITY
        assert not caught.value.sent
        assert not sent.sent
        blocking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await blocking
    await upstream.aclose()
    deadlines.close()
