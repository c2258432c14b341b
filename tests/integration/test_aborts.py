"""Clients that leave at every moment of a request: nothing goes on, nothing is kept, and it is booked once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from gateway.data_plane.limits import WireLimits
from gateway.pipeline import relay
from gateway.pipeline.holds import Resolution
from tests.fakes.gateway import CHAT, RunningGateway, chat_body, config, request, running_gateway
from tests.fakes.openai_answers import DONE, ROLE, STOP, delta, refusal, stream, usage_chunk, words
from tests.fakes.raw_client import RawClient
from tests.fakes.scripted_server import Flood, Hang, Script, ScriptedServer, Sleep, chunk, chunked_head
from tests.integration.leaving import SOON, expect_nothing_left, leave, resolutions

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
