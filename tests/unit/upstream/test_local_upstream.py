"""The queue in front of an engine, with a scripted server in the engine's place."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from adapters.errors import ProviderError
from adapters.types import FailureKind
from gateway.deadlines import Deadlines
from gateway.upstream.base import RequestHead
from gateway.upstream.http1 import Http1Upstream
from gateway.upstream.local import LocalUpstream, fair_key, local_origin
from local_engine.errors import EngineDownError
from local_engine.probe import Address
from local_engine.state import EngineState
from tests.fakes.body_sink import CollectingSink
from tests.fakes.scripted_server import (
    LAST_CHUNK,
    Close,
    Hang,
    Reset,
    Script,
    ScriptedServer,
    answer,
    chunk,
    chunked_head,
)


class PlayedEngine:
    """An engine whose state the test sets."""

    name = "played"
    slots = 1
    supports_tools = False

    def __init__(self, socket_path: str, api_key: str = "") -> None:
        self.address = Address(socket_path=socket_path, api_key=api_key)
        self.state = EngineState.READY
        self.last_error = ""
        self.ready = asyncio.Event()
        self.ready.set()

        self.claims = 0

    def wake(self) -> None:
        """It is awake."""

    async def claim(self, timeout_seconds: float) -> None:
        await self.ready.wait()
        if self.state is not EngineState.READY:
            raise EngineDownError(self.last_error)
        self.claims += 1

    def release(self) -> None:
        self.claims -= 1


@pytest.fixture
def socket_path(tmp_path: Path) -> str:
    return str(tmp_path / "e.sock")


@pytest.fixture
def engine(socket_path: str) -> PlayedEngine:
    return PlayedEngine(socket_path)


@pytest.fixture
async def upstream(engine: PlayedEngine) -> AsyncIterator[LocalUpstream]:
    deadlines = Deadlines()
    inner = Http1Upstream(deadlines)
    yield LocalUpstream(engine, inner, queue_limit=4)
    await inner.aclose()
    deadlines.close()


@pytest.fixture
def head(engine: PlayedEngine) -> RequestHead:
    return RequestHead("POST", "/v1/chat/completions", local_origin(engine), ())


async def test_every_request_has_a_connection_of_its_own(
    socket_path: str, upstream: LocalUpstream, head: RequestHead
) -> None:
    async with ScriptedServer(unix_path=socket_path) as server:
        for _ in range(2):
            assert await (await upstream.send(head, b"{}")).read(100) == b"{}"

        assert server.connections == 2
        assert server.requests[0].headers["connection"] == "close"


@pytest.mark.parametrize(
    "script",
    [
        (answer(b"{}"),),
        (answer(b'{"error": {}}', status=400),),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nshort", Close()),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n" + b"x" * 1000,),
    ],
    ids=["answer", "refusal", "broken-off", "too-large"],
)
async def test_an_answer_that_was_read_gives_its_slot_back_however_it_went(
    socket_path: str, upstream: LocalUpstream, head: RequestHead, script: Script
) -> None:
    async with ScriptedServer(script, unix_path=socket_path):
        response = await upstream.send(head, b"{}")
        assert upstream.free_slots == 0
        with contextlib.suppress(ProviderError):
            await response.read(100)
        response.close()
        response.close()

        assert upstream.free_slots == 1


@pytest.mark.parametrize("script", [(Close(),), (Reset(),), (b"nonsense\r\n\r\n",)], ids=["close", "reset", "nonsense"])
async def test_a_failure_before_the_answer_gives_the_slot_back(
    socket_path: str, upstream: LocalUpstream, head: RequestHead, script: Script
) -> None:
    async with ScriptedServer(script, unix_path=socket_path):
        with pytest.raises(ProviderError):
            await upstream.send(head, b"{}")

        assert upstream.free_slots == 1


async def test_a_cancelled_request_gives_the_slot_back(
    socket_path: str, upstream: LocalUpstream, head: RequestHead
) -> None:
    async with ScriptedServer((Hang(),), unix_path=socket_path) as server:
        task = asyncio.create_task(upstream.send(head, b"{}"))
        await server.wait_until(lambda seen: len(seen.requests) == 1)

        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        assert upstream.free_slots == 1
        await server.wait_until(lambda seen: seen.open_connections == 0)


async def test_a_stream_gives_the_slot_back_at_its_end(
    socket_path: str, upstream: LocalUpstream, head: RequestHead
) -> None:
    async with ScriptedServer((chunked_head(), chunk(b"data: 1\n\n"), LAST_CHUNK), unix_path=socket_path):
        response = await upstream.send(head, b'{"stream":true}')
        sink = CollectingSink()
        response.stream(sink)
        assert await sink.wait_for_end() is None
        assert upstream.free_slots == 1

        response.close()

        assert sink.data == b"data: 1\n\n"
        assert upstream.free_slots == 1


async def test_an_abandoned_stream_gives_the_slot_to_the_next_in_line(
    socket_path: str, upstream: LocalUpstream, head: RequestHead
) -> None:
    async with ScriptedServer((chunked_head(), chunk(b"data: 1\n\n"), Hang()), unix_path=socket_path) as server:
        first = await upstream.send(head, b"1")
        second = asyncio.create_task(upstream.send(head, b"2"))
        await asyncio.sleep(0)
        assert upstream.waiting == 1

        first.close()
        (await second).close()

        assert [request.body for request in server.requests] == [b"1", b"2"]
        assert upstream.free_slots == 1


async def test_callers_take_turns_by_their_fair_key(
    socket_path: str, upstream: LocalUpstream, head: RequestHead
) -> None:
    async def ask(key: str) -> None:
        fair_key.set(key)
        await (await upstream.send(head, key.encode())).read(100)

    async with ScriptedServer(unix_path=socket_path) as server:
        await asyncio.gather(*(asyncio.create_task(ask(key)) for key in ("first", "busy", "busy", "other")))

        assert [request.body for request in server.requests] == [b"first", b"busy", b"other", b"busy"]


async def test_a_full_queue_is_no_capacity(socket_path: str, upstream: LocalUpstream, head: RequestHead) -> None:
    async with ScriptedServer((Hang(),), unix_path=socket_path):
        tasks = [asyncio.create_task(upstream.send(head, b"{}")) for _ in range(5)]
        await asyncio.sleep(0)

        with pytest.raises(ProviderError) as refusal:
            await upstream.send(head, b"{}")

        assert (refusal.value.kind, refusal.value.sent) == (FailureKind.NO_CAPACITY, False)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert (upstream.free_slots, upstream.waiting) == (1, 0)


async def test_a_request_waits_for_an_engine_that_starts(
    socket_path: str, engine: PlayedEngine, upstream: LocalUpstream, head: RequestHead
) -> None:
    engine.state = EngineState.STARTING
    engine.ready.clear()
    async with ScriptedServer(unix_path=socket_path) as server:
        task = asyncio.create_task(upstream.send(head, b"{}"))
        await asyncio.sleep(0.01)
        assert server.connections == 0

        engine.state = EngineState.READY
        engine.ready.set()

        assert await (await task).read(100) == b"{}"


@pytest.mark.parametrize("known", [True, False], ids=["told by its state", "found by connecting"])
async def test_an_engine_that_is_down_is_told_with_its_reason(
    engine: PlayedEngine, upstream: LocalUpstream, head: RequestHead, known: bool
) -> None:
    if known:
        engine.state = EngineState.FAILED
        engine.last_error = "no model file at /home/operator/model.gguf"

    with pytest.raises(ProviderError, match="failed" if known else "does not listen") as failure:
        await upstream.send(head, b"{}")

    assert (failure.value.kind, failure.value.sent) == (FailureKind.ENGINE_DOWN, False)
    assert "/" not in failure.value.message.replace("/health/ready", ""), "clients learn no paths"
    assert ("/home/operator/model.gguf" in failure.value.detail) is known
    assert upstream.free_slots == 1


async def test_the_key_of_an_engine_goes_with_each_request(
    socket_path: str, engine: PlayedEngine, upstream: LocalUpstream, head: RequestHead
) -> None:
    engine.address = Address(socket_path=socket_path, api_key="s3cret")
    async with ScriptedServer(unix_path=socket_path) as server:
        await (await upstream.send(head, b"{}", b"x-own: 1\r\n")).read(100)

        assert server.requests[0].headers["authorization"] == "Bearer s3cret"
        assert server.requests[0].headers["x-own"] == "1"
