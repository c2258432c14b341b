"""Clients that leave at every moment of a request: nothing goes on, nothing is kept, and it is booked once."""

from __future__ import annotations

import asyncio
import contextlib
import json
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gateway.data_plane.limits import WireLimits
from gateway.engines import SHARED_VARIABLE
from gateway.pipeline import relay
from gateway.pipeline.holds import CountingLedger, Resolution
from gateway.upstream.http1 import Http1Upstream
from tests.fakes.gateway import CHAT, KEY, RunningGateway, chat_body, config, request, running_gateway
from tests.fakes.openai_answers import DONE, ROLE, STOP, delta, good_stream, refusal, stream, usage_chunk, whole, words
from tests.fakes.raw_client import RawClient
from tests.fakes.scripted_server import (
    Flood,
    Hang,
    RecordedRequest,
    Script,
    ScriptedServer,
    Sleep,
    Until,
    chunk,
    chunked_head,
)

SOON = 1.0
"""Seconds in which everything has to be over; a tenth of it is usual."""

JSON_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 5000\r\n\r\n"
EVENTS = (ROLE, *words("Hello", " there"))

Ready = Callable[[ScriptedServer, RunningGateway, RawClient], Awaitable[None]]


async def asked(server: ScriptedServer, gateway: RunningGateway, client: RawClient) -> None:
    """The upstream has the request, and what it says to it has had time to arrive."""
    await server.wait_until(lambda it: bool(it.requests))
    await asyncio.sleep(0.05)


async def first_piece(server: ScriptedServer, gateway: RunningGateway, client: RawClient) -> None:
    """The client has read something of the body."""
    await server.wait_until(lambda it: bool(it.requests))
    async with asyncio.timeout(5):
        await client.head()
        assert await client.chunk()


async def stuck(server: ScriptedServer, gateway: RunningGateway, client: RawClient) -> None:
    """The client reads nothing, and the upstream cannot send any more."""
    await server.wait_until(lambda it: bool(it.requests))
    (call,) = gateway.services.in_flight
    seen = -1
    # A pause in sending alone may as well come from a busy machine.
    async with asyncio.timeout(10):
        while seen != server.sent_bytes or not call.exchange.paused:
            seen = server.sent_bytes
            await asyncio.sleep(0.1)


@dataclass(frozen=True)
class Phase:
    """A moment to leave at."""

    name: str
    script: Script
    ready: Ready
    streamed: bool
    resolution: Resolution = Resolution.ESTIMATED
    failure: str = "client_left"
    settings: dict[str, Any] = field(default_factory=dict)
    receive_buffer: int | None = None


PHASES = [
    Phase("waiting for the head", [Hang()], asked, streamed=False),
    Phase("in the body", [JSON_HEAD + b'{"choices":', Hang()], asked, streamed=False),
    Phase("waiting for the head of a stream", [Hang()], asked, streamed=True),
    Phase("after the role", [chunked_head(), chunk(ROLE), Hang()], asked, streamed=True),
    Phase("in the middle", [chunked_head(), *map(chunk, EVENTS), Hang()], first_piece, streamed=True),
    Phase("before [DONE]", [chunked_head(), *map(chunk, (*EVENTS, STOP)), Hang()], first_piece, streamed=True),
    Phase(
        "while it does not read",
        [chunked_head(), Flood(chunk(delta(content="x" * 8192)), 64 * 2**20)],
        stuck,
        streamed=True,
        receive_buffer=4096,
    ),
    Phase(
        "after the usage",
        [chunked_head(), *map(chunk, (*EVENTS, STOP, usage_chunk())), Sleep(0.02), chunk(b": x\n\n"), Hang()],
        first_piece,
        streamed=True,
        resolution=Resolution.SETTLED,
    ),
    Phase(
        "between two tries",
        [refusal(429, headers="retry-after: 3\r\n")],
        asked,
        streamed=False,
        resolution=Resolution.VOID,
        failure="rate_limited",
    ),
    Phase(
        "between two tries of a stream",
        [refusal(429, headers="retry-after: 3\r\n")],
        asked,
        streamed=True,
        resolution=Resolution.VOID,
        failure="rate_limited",
    ),
    Phase(
        "in a whole answer to a stream",
        [JSON_HEAD + b'{"choices":', Hang()],
        asked,
        streamed=True,
    ),
    Phase(
        "after a comment",
        [Hang()],
        first_piece,
        streamed=True,
        settings={"server": {"stream_keepalive": "50ms"}},
    ),
]
LEAVING = ("close", "reset")
COMBINATIONS = [("uvicorn", "own"), ("asgi", "own"), ("uvicorn", "httpx")]
RESET = ("uvicorn", "own", "reset")


async def leave(client: RawClient, way: str) -> None:
    client.reset() if way == "reset" else client.writer.close()


def resolutions(gateway: RunningGateway) -> dict[Resolution, int]:
    ledger = gateway.services.ledger
    assert isinstance(ledger, CountingLedger)
    return {how: count for how, count in ledger.resolutions.items() if count}


async def expect_nothing_left(gateway: RunningGateway, before: set[asyncio.Task[Any]]) -> None:
    """All that a request occupied is free again, soon."""
    await gateway.quiet(SOON)
    assert gateway.services.ledger.open_holds == 0
    assert gateway.request_watches() == []
    await gateway.wait_for(lambda: asyncio.all_tasks() <= before, SOON)
    model = next(iter(gateway.services.catalog.models.values()))
    if isinstance(gateway.services.backends.route(model).backends[0].upstream, Http1Upstream):
        await gateway.wait_for(lambda: gateway.upstream.in_use == 0, SOON)


@pytest.mark.parametrize(("server", "upstream_client", "way"), [(*both, "close") for both in COMBINATIONS] + [RESET])
@pytest.mark.parametrize("phase", PHASES, ids=lambda phase: phase.name)
async def test_a_client_may_leave(phase: Phase, server: str, upstream_client: str, way: str) -> None:
    limits = WireLimits(buffer_bytes=64 * 1024)
    async with (
        ScriptedServer(phase.script) as upstream,
        running_gateway(
            {**config(upstream), **phase.settings}, server=server, upstream_client=upstream_client, limits=limits
        ) as gateway,
    ):
        before = asyncio.all_tasks()
        client = await gateway.connect(receive_buffer=phase.receive_buffer)
        await client.send(request(CHAT, chat_body(stream=phase.streamed)))
        await phase.ready(upstream, gateway, client)
        assert gateway.services.in_flight

        await leave(client, way)

        if phase.failure == "client_left":
            await upstream.wait_until(lambda it: it.open_connections == 0, SOON)
        await expect_nothing_left(gateway, before | set(upstream._tasks))
        row = await gateway.row()
        assert len(upstream.requests) == 1
        assert resolutions(gateway) == {phase.resolution: 1}
    assert (row["status"], row["error_code"]) == (499, "client_left")
    assert [attempt["failure"] for attempt in row["attempts"]] == [phase.failure]
    if phase.resolution is Resolution.ESTIMATED:
        assert row["estimated"]
        assert row["prompt_tokens"] > 0
        assert (row["completion_tokens"] > 0) == (phase.ready in (first_piece, stuck) and not phase.settings)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(("server", "upstream_client"), COMBINATIONS)
async def test_a_client_may_leave_while_we_connect(
    deaf_port: int, server: str, upstream_client: str, streamed: bool
) -> None:
    async with running_gateway(config(deaf_port), server=server, upstream_client=upstream_client) as gateway:
        before = asyncio.all_tasks()
        client = await gateway.connect()
        await client.send(request(CHAT, chat_body(stream=streamed)))
        await gateway.wait_for(lambda: gateway.services.ledger.open_holds == 1)
        await asyncio.sleep(0.05)
        assert gateway.services.ledger.open_holds == 1

        await leave(client, "close")

        await expect_nothing_left(gateway, before)
        row = await gateway.row()
        assert resolutions(gateway) == {Resolution.VOID: 1}
    assert (row["status"], row["cost_nusd"], row["prompt_tokens"]) == (499, None, 0)


@pytest.mark.parametrize("server", ["uvicorn", "asgi"])
@pytest.mark.parametrize("way", LEAVING)
async def test_a_client_that_leaves_after_its_answer_has_had_it(
    server: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The upstream keeps the body open after ``[DONE]``: that is no business of the client's."""
    monkeypatch.setattr(relay, "_LINGER_SECONDS", 0.3)
    script = [*stream(*EVENTS, STOP, usage_chunk(), DONE, end=False), Hang()]
    async with ScriptedServer(script) as upstream, running_gateway(config(upstream), server=server) as gateway:
        before = asyncio.all_tasks()
        client = await gateway.connect()
        await client.send(request(CHAT, chat_body(stream=True)))
        answer = await client.answer()
        await leave(client, way)
        await upstream.wait_until(lambda it: it.open_connections == 0, 3.0)
        await expect_nothing_left(gateway, before)
        row = await gateway.row()
        assert resolutions(gateway) == {Resolution.SETTLED: 1}
    assert answer.complete
    assert (row["status"], row["error_code"], row["prompt_tokens"]) == (200, None, 9)


# A local engine, whose slots are few


def answering_after(event: asyncio.Event) -> Callable[[RecordedRequest], Script]:
    """An engine that answers once *event* is set, and streams where it is asked to."""
    return lambda sent: [Until(event), *(good_stream() if json.loads(sent.body).get("stream") else [whole()])]


@contextlib.asynccontextmanager
async def one_slot(
    script: Script | Callable[[RecordedRequest], Script], server: str
) -> AsyncIterator[tuple[ScriptedServer, RunningGateway]]:
    """A gateway in front of an engine with one slot, which another process owns."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "engine.sock"))
        Path(folder, "engine.state").write_text('["ready", "", false]')
        shared = json.dumps({"local": ["tiny", {"socket_path": path, "control": str(Path(folder, "engine"))}, 1]})
        settings = {
            "providers": {"local": {"type": "local"}},
            "models": {"m": {"targets": [{"provider": "local"}]}},
        }
        async with (
            ScriptedServer(script, unix_path=path) as engine,
            running_gateway(settings, server=server, environ={SHARED_VARIABLE: shared}) as gateway,
        ):
            yield engine, gateway


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("server", ["uvicorn", "asgi"])
async def test_a_client_may_leave_the_queue_of_a_local_engine(server: str, streamed: bool) -> None:
    done = asyncio.Event()
    async with one_slot(answering_after(done), server) as (engine, gateway):
        (queue,) = gateway.services.backends.queues.values()
        first = asyncio.create_task(gateway.chat())
        await engine.wait_until(lambda it: bool(it.requests))
        before = asyncio.all_tasks()
        client = await gateway.connect()
        await client.send(request(CHAT, chat_body(stream=streamed)))
        await gateway.wait_for(lambda: queue.waiting == 1)

        await leave(client, "close")

        await gateway.wait_for(lambda: queue.waiting == 0, SOON)
        done.set()
        assert (await first).status == 200
        await expect_nothing_left(gateway, before)
        rows = await gateway.rows()
        assert (queue.free_slots, len(engine.requests)) == (1, 1)
        assert resolutions(gateway) == {Resolution.VOID: 1, Resolution.SETTLED: 1}
    assert sorted(row["status"] for row in rows) == [200, 499]


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_client_that_leaves_gives_its_slot_back(streamed: bool) -> None:
    async with one_slot([Hang()], "uvicorn") as (engine, gateway):
        (queue,) = gateway.services.backends.queues.values()
        before = asyncio.all_tasks()
        client = await gateway.connect()
        await client.send(request(CHAT, chat_body(stream=streamed)))
        await engine.wait_until(lambda it: bool(it.requests))
        assert queue.free_slots == 0

        await leave(client, "close")

        await engine.wait_until(lambda it: it.open_connections == 0, SOON)
        await expect_nothing_left(gateway, before)
        assert queue.free_slots == 1
        assert resolutions(gateway) == {Resolution.ESTIMATED: 1}


async def test_the_queue_of_a_local_engine_is_fair_between_keys() -> None:
    other = "gw-other-key-0123456789abcdef"
    done = asyncio.Event()
    async with one_slot(answering_after(done), "uvicorn") as (engine, gateway):
        await gateway.services.keys.create("other", secret=other)
        (queue,) = gateway.services.backends.queues.values()
        asked = []
        for number, key in enumerate((KEY, KEY, KEY, other)):
            asked.append(asyncio.create_task(gateway.chat(key=key, user=str(number))))
            await gateway.wait_for(lambda: len(engine.requests) == 1 and queue.waiting == len(asked) - 1)
        done.set()
        await asyncio.gather(*asked)
        assert [json.loads(sent.body)["user"] for sent in engine.requests] == ["0", "1", "3", "2"]
