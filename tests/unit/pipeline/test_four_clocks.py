"""Four clocks: connecting, first content, the gap between contents, the whole request; all wait for our own client."""

from __future__ import annotations

import asyncio

import pytest

from gateway.data_plane.limits import WireLimits
from tests.fakes.gateway import CHAT, CLIENTS, SERVERS, chat_body, config, provider, request, running_gateway
from tests.fakes.openai_answers import DONE, ROLE, STOP, delta, good_stream, payloads, text_of, whole, words
from tests.fakes.scripted_server import (
    LAST_CHUNK,
    Flood,
    Hang,
    Script,
    ScriptedServer,
    Sleep,
    Step,
    chunk,
    chunked_head,
)

SLOW = 5.0
"""Seconds after which something that should have been cut off at a fraction of one has certainly not been."""


@pytest.mark.parametrize("client", CLIENTS)
async def test_connecting_has_a_limit_of_its_own(deaf_port: int, client: str) -> None:
    async with ScriptedServer([whole()]) as two:
        settings = config(deaf_port, two)
        settings["providers"]["p1"] = provider(deaf_port, connect_timeout="150ms")
        async with running_gateway(settings, upstream_client=client) as gateway:
            got = await gateway.chat(timeout=SLOW)
            row = await gateway.row()
    assert (got.status, got.headers["x-gateway-target"]) == (200, "p2/up2")
    assert [attempt["failure"] for attempt in row["attempts"]] == ["connect_timeout", None]
    assert row["attempts"][0]["prompt_tokens"] is None  # nothing was sent, nothing is owed


def again(times: int, *steps: Step) -> list[Step]:
    return [step for _ in range(times) for step in steps]


FIRST_CONTENT: list[Script] = [
    [Hang()],
    [chunked_head(), Hang()],
    [chunked_head(), chunk(ROLE), Hang()],
    [chunked_head(), *again(40, chunk(b": ping\n\n"), Sleep(0.05)), Hang()],
    [chunked_head(), *again(40, chunk(ROLE), Sleep(0.05)), Hang()],
]


@pytest.mark.parametrize("script", FIRST_CONTENT, ids=["no-head", "head", "role", "comments", "roles"])
async def test_the_first_content_has_a_limit(script: Script) -> None:
    async with (
        ScriptedServer(script) as one,
        ScriptedServer(good_stream("Second.")) as two,
        running_gateway(config(one, two, timeouts={"first_event": "200ms"})) as gateway,
    ):
        got = await gateway.chat(stream=True, timeout=SLOW)
        row = await gateway.row()
        await gateway.wait_for(lambda: gateway.upstream.in_use == 0, 1.0)
    assert text_of(got.body) == "Second."
    assert [attempt["failure"] for attempt in row["attempts"]] == ["first_content_timeout", None]
    assert len(one.requests) == 1


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_plain_answer_that_drips_has_a_limit(client: str) -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 5000\r\n\r\n"
    dripping: Script = [head, *again(100, b" ", Sleep(0.05))]
    async with (
        ScriptedServer(dripping) as one,
        ScriptedServer([whole()]) as two,
        running_gateway(config(one, two, timeouts={"first_event": "800ms"}), upstream_client=client) as gateway,
    ):
        got = await gateway.chat(timeout=SLOW)
        row = await gateway.row()
    assert got.status == 200
    assert row["attempts"][0]["failure"] == "first_content_timeout"


async def test_a_stream_that_flows_on_ends_with_the_whole_limit() -> None:
    script: Script = [chunked_head(), chunk(ROLE), *again(200, chunk(delta(content="la ")), Sleep(0.03))]
    async with (
        ScriptedServer(script) as one,
        running_gateway(config(one, timeouts={"total": "400ms"})) as gateway,
    ):
        got = await gateway.chat(stream=True, timeout=SLOW)
        row = await gateway.row()
    assert payloads(got.body)[-1]["error"]["code"] == "upstream_timeout"
    assert (row["attempts"][0]["failure"], row["status"]) == ("total_timeout", 200)
    assert text_of(got.body).startswith("la la la ")


async def test_content_in_time_restarts_the_gap() -> None:
    slow_words: Script = [chunked_head(), chunk(ROLE)]
    pieces = [step for word in words(*"abcdef") for step in (chunk(word), Sleep(0.12))]
    async with (
        ScriptedServer([*slow_words, *pieces, chunk(STOP), chunk(DONE), LAST_CHUNK]) as one,
        running_gateway(config(one, timeouts={"stall": "400ms", "first_event": "400ms"})) as gateway,
    ):
        got = await gateway.chat(stream=True, timeout=SLOW)
    assert text_of(got.body) == "abcdef"
    assert got.body.endswith(DONE)


BIG = chunk(delta(content="x" * 8192))


@pytest.mark.parametrize("server", SERVERS)
async def test_no_clock_runs_while_the_client_does_not_read(server: str) -> None:
    """The stall limit is far shorter than the time the client takes; it still gets every byte."""
    total = 12 * 2**20
    script: Script = [chunked_head(), Flood(BIG, total), chunk(STOP), chunk(DONE), LAST_CHUNK]
    settings = {"timeouts": {"stall": "150ms", "first_event": "1s", "total": "1s"}}
    async with (
        ScriptedServer(script) as upstream,
        running_gateway(config(upstream, **settings), server=server, limits=WireLimits(buffer_bytes=65536)) as gateway,
    ):
        client = await gateway.connect(receive_buffer=8192, limit=2**16)
        await client.send(request(CHAT, chat_body(stream=True)))
        await gateway.wait_for(lambda: any(call.exchange.paused for call in gateway.services.in_flight))
        await asyncio.sleep(0.8)
        got = await client.answer(SLOW)
        row = await gateway.row()
    assert got.complete
    assert got.body.endswith(DONE)
    assert len(text_of(got.body)) == total // len(BIG) * 8192
    assert row["error_code"] is None


@pytest.mark.parametrize("server", SERVERS)
async def test_what_waits_for_a_slow_client_is_bounded(server: str) -> None:
    endless: Script = [chunked_head(), Flood(BIG, 256 * 2**20)]
    async with (
        ScriptedServer(endless) as upstream,
        running_gateway(config(upstream), server=server, limits=WireLimits(buffer_bytes=65536)) as gateway,
    ):
        client = await gateway.connect(receive_buffer=8192, limit=2**16)
        await client.send(request(CHAT, chat_body(stream=True)))
        await gateway.wait_for(lambda: any(call.exchange.paused for call in gateway.services.in_flight))
        sent = -1
        while sent != upstream.sent_bytes:
            sent = upstream.sent_bytes
            await asyncio.sleep(0.1)
        quick = await gateway.connect()
        await quick.send(request("/v1/chat/completions", b"{"))
        assert (await quick.answer()).status == 400
    # Most of it lies in the kernel's buffers of both connections.
    assert sent < 16 * 2**20


async def test_a_client_that_never_reads_on_is_closed_and_booked() -> None:
    limits = WireLimits(buffer_bytes=65536, write_stall_seconds=0.3)
    async with (
        ScriptedServer([chunked_head(), Flood(BIG, 64 * 2**20)]) as upstream,
        running_gateway(config(upstream), limits=limits) as gateway,
    ):
        client = await gateway.connect(receive_buffer=8192, limit=2**16)
        await client.send(request(CHAT, chat_body(stream=True)))
        await upstream.wait_until(lambda it: bool(it.requests))
        await upstream.wait_until(lambda it: it.open_connections == 0)
        row = await gateway.row()
        assert gateway.services.ledger.open_holds == 0
    assert (row["status"], row["estimated"]) == (499, True)
