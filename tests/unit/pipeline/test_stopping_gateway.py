"""A gateway that is told to stop: new requests are refused, those under way are ended honestly."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gateway.pipeline.holds import CountingLedger, Resolution
from tests.fakes.gateway import CHAT, SERVERS, RunningGateway, chat_body, config, request, running_gateway
from tests.fakes.openai_answers import ROLE, payloads, refusal, text_of, whole, words
from tests.fakes.scripted_server import Hang, Script, ScriptedServer, chunk, chunked_head

MID_STREAM: Script = [chunked_head(), chunk(ROLE), *map(chunk, words("Hel", "lo")), Hang()]


async def expect_nothing_left(gateway: RunningGateway, resolution: Resolution) -> dict[str, Any]:
    await gateway.quiet(1.0)
    ledger = gateway.services.ledger
    assert isinstance(ledger, CountingLedger)
    assert ledger.open_holds == 0
    assert {how: count for how, count in ledger.resolutions.items() if count} == {resolution: 1}
    assert gateway.request_watches() == []
    await gateway.wait_for(lambda: gateway.upstream.in_use == 0, 1.0)
    return await gateway.row()


@pytest.mark.parametrize("server", SERVERS)
async def test_while_draining_new_requests_are_refused(server: str) -> None:
    async with ScriptedServer([whole()]) as upstream, running_gateway(config(upstream), server=server) as gateway:
        gateway.services.draining = True
        got = await gateway.chat()
    assert (got.status, got.error["code"], got.headers["retry-after"]) == (503, "draining", "1")
    assert upstream.requests == []


@pytest.mark.parametrize("server", SERVERS)
async def test_a_stream_that_is_ended_says_why(server: str) -> None:
    async with ScriptedServer(MID_STREAM) as upstream, running_gateway(config(upstream), server=server) as gateway:
        client = await gateway.connect()
        await client.send(request(CHAT, chat_body(stream=True)))
        await gateway.wait_for(lambda: any(call.relay and call.relay.committed for call in gateway.services.in_flight))
        gateway.app.end_remaining()
        got = await client.answer()
        await upstream.wait_until(lambda it: it.open_connections == 0, 1.0)
        row = await expect_nothing_left(gateway, Resolution.ESTIMATED)
    assert text_of(got.body) == "Hello"
    assert payloads(got.body)[-1]["error"]["code"] == "shutting_down"
    assert b"[DONE]" not in got.body
    assert got.complete
    assert (row["status"], row["error_code"]) == (200, "shutting_down")
    assert row["attempts"][0]["failure"] == "shutting_down"


HELD: list[Any] = [
    pytest.param([Hang()], False, Resolution.ESTIMATED, "shutting_down", id="plain"),
    pytest.param([Hang()], True, Resolution.ESTIMATED, "shutting_down", id="stream-without-head"),
    pytest.param([chunked_head(), chunk(ROLE), Hang()], True, Resolution.ESTIMATED, "shutting_down", id="after-role"),
    pytest.param(
        [refusal(429, headers="retry-after: 3\r\n")], False, Resolution.VOID, "rate_limited", id="between-tries"
    ),
]


@pytest.mark.parametrize(("script", "streamed", "resolution", "failure"), HELD)
@pytest.mark.parametrize("server", SERVERS)
async def test_a_request_whose_status_is_unspent_gets_a_503(
    server: str, script: Script, streamed: bool, resolution: Resolution, failure: str
) -> None:
    async with ScriptedServer(script) as upstream, running_gateway(config(upstream), server=server) as gateway:
        client = await gateway.connect()
        await client.send(request(CHAT, chat_body(stream=streamed)))
        await upstream.wait_until(lambda it: bool(it.requests))
        await asyncio.sleep(0.05)
        gateway.app.end_remaining()
        got = await client.answer()
        row = await expect_nothing_left(gateway, resolution)
    assert (got.status, got.error["code"]) == (503, "shutting_down")
    assert (row["status"], row["error_code"], row["attempts"][-1]["failure"]) == (503, "shutting_down", failure)
    assert len(upstream.requests) == 1


@pytest.mark.parametrize("server", SERVERS)
async def test_a_stream_of_comments_ends_with_the_reason(server: str) -> None:
    settings = {"server": {"stream_keepalive": "50ms"}}
    async with (
        ScriptedServer([Hang()]) as upstream,
        running_gateway({**config(upstream), **settings}, server=server) as gateway,
    ):
        client = await gateway.connect()
        await client.send(request(CHAT, chat_body(stream=True)))
        await gateway.wait_for(lambda: any(call.exchange.started for call in gateway.services.in_flight))
        gateway.app.end_remaining()
        got = await client.answer()
        row = await expect_nothing_left(gateway, Resolution.ESTIMATED)
    assert got.complete
    assert got.body.startswith(b": keep-alive\n\n")
    assert payloads(got.body)[-1]["error"]["code"] == "shutting_down"
    assert (row["status"], row["error_code"]) == (200, "shutting_down")


async def test_the_metrics_do_not_blame_the_client() -> None:
    async with ScriptedServer([Hang()]) as upstream, running_gateway(config(upstream)) as gateway:
        asked = asyncio.create_task(gateway.chat())
        await upstream.wait_until(lambda it: bool(it.requests))
        gateway.app.end_remaining()
        await asked
        assert gateway.metric("gateway_upstream_attempts_total", outcome="cancelled") == 1
        assert gateway.metric("gateway_requests_total", status="503", error_code="shutting_down") == 1
