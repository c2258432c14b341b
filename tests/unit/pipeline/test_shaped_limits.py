"""Clocks, slow clients and a stopping gateway, where one answer takes several requests."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.fakes.gateway import CHAT, chat_body, request, running_gateway
from tests.fakes.openai_answers import DONE, ROLE, STOP, delta, payloads, stream, text_of, words
from tests.fakes.scripted_server import (
    LAST_CHUNK,
    Flood,
    Hang,
    RecordedRequest,
    Script,
    ScriptedServer,
    Sleep,
    chunk,
    chunked_head,
)
from tests.fakes.shapes import ADA, AS_PERSON, LOOK, in_turn, lacking, said, text_of_whole

ONE_CHOICE = {"params": {"n": {"support": "limited", "max": 1, "patch": "fan_out"}}}
EITHER = {"conflicts": [{"when": ["tools", "response_format"], "result": 400, "patch": "two_phase"}]}


def limited(server: ScriptedServer, overrides: dict[str, Any], **timeouts: str) -> dict[str, Any]:
    settings = lacking(server, overrides=overrides)
    settings["models"]["m"]["timeouts"] = timeouts
    return settings


async def test_every_request_has_the_time_of_a_first_content_to_itself() -> None:
    slow: list[Script] = [[Sleep(0.3), said("Let me think.")], [Sleep(0.3), said(ADA)]]
    async with (
        ScriptedServer(in_turn(*slow)) as server,
        running_gateway(limited(server, EITHER, first_event="500ms")) as gateway,
    ):
        answer = await gateway.chat(tools=[LOOK], response_format=AS_PERSON)

    assert text_of_whole(answer) == ADA


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_later_request_that_stays_silent_is_a_timeout(streamed: bool) -> None:
    async with (
        ScriptedServer(in_turn(said("Let me think."), [Hang()])) as server,
        running_gateway(limited(server, EITHER, first_event="200ms")) as gateway,
    ):
        answer = await gateway.chat(tools=[LOOK], response_format=AS_PERSON, stream=streamed)

        assert answer.status == 504
        await server.wait_until(lambda server: server.open_connections <= 1)
        (attempt,) = (await gateway.row())["attempts"]
    assert attempt["failure"] == "first_content_timeout"


async def test_the_whole_has_one_limit_for_all_requests() -> None:
    async with (
        ScriptedServer(in_turn([Sleep(0.2), said("Let me think.")], [Hang()])) as server,
        running_gateway(limited(server, EITHER, total="400ms")) as gateway,
    ):
        # The other limits are those of the defaults, half a minute and more.
        answer = await gateway.chat(tools=[LOOK], response_format=AS_PERSON, timeout=10)

        assert answer.status == 504


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_choice_that_stays_silent_ends_all_of_them(streamed: bool) -> None:
    async with (
        ScriptedServer([Hang()]) as server,
        running_gateway(limited(server, ONE_CHOICE, first_event="200ms")) as gateway,
    ):
        answer = await gateway.chat(n=3, stream=streamed)

        assert answer.status == 504
        await server.wait_until(lambda server: server.open_connections == 0)


async def test_streams_that_stall_after_content_end_with_an_error_event() -> None:
    async with (
        ScriptedServer(stream(ROLE, *words("Hello"), end=False)) as server,
        running_gateway(limited(server, ONE_CHOICE, stall="200ms")) as gateway,
    ):
        answer = await gateway.chat(n=2, stream=True)

        assert "error" in payloads(answer.body)[-1]
        await server.wait_until(lambda server: server.open_connections <= 2)


async def test_all_streams_wait_for_a_slow_client() -> None:
    event = delta(content="x" * 4000)
    script: Script = [
        chunked_head(),
        chunk(ROLE),
        Flood(chunk(event), 64 * 2**20),
        chunk(STOP),
        chunk(DONE),
        LAST_CHUNK,
    ]
    async with ScriptedServer(script) as server, running_gateway(lacking(server, overrides=ONE_CHOICE)) as gateway:
        client = await gateway.connect(receive_buffer=8192, limit=2**16)
        await client.send(request(CHAT, chat_body(n=2, stream=True)))
        await server.wait_until(lambda server: len(server.requests) == 2)
        before = -1
        async with asyncio.timeout(10):
            while server.sent_bytes != before:  # until nobody sends any more
                before = server.sent_bytes
                await asyncio.sleep(0.2)

        assert server.sent_bytes < 24 * 2**20
        assert len(gateway.services.in_flight) == 1
        await client.close()
        await server.wait_until(lambda server: server.open_connections == 0)


async def test_a_gateway_that_stops_ends_all_streams_with_the_reason() -> None:
    async with (
        ScriptedServer(stream(ROLE, *words("Hello"), end=False)) as server,
        running_gateway(lacking(server, overrides=ONE_CHOICE)) as gateway,
    ):
        asking = asyncio.create_task(gateway.chat(n=2, stream=True))
        await server.wait_until(lambda server: len(server.requests) == 2)
        await gateway.wait_for(lambda: any(call.attempts[-1].first_content for call in gateway.services.in_flight))
        gateway.app.end_remaining()
        answer = await asking

        assert payloads(answer.body)[-1]["error"]["code"] == "shutting_down"
        await server.wait_until(lambda server: server.open_connections == 0)


async def test_events_cut_anywhere_are_told_to_their_choices() -> None:
    def script(request: RecordedRequest) -> Script:
        body = b"".join([ROLE, *words("Grüße", " aus", " 東京"), STOP, DONE])
        pieces = [body[at : at + 7] for at in range(0, len(body), 7)]
        return [chunked_head(), *map(chunk, pieces), LAST_CHUNK]

    async with ScriptedServer(script) as server, running_gateway(lacking(server, overrides=ONE_CHOICE)) as gateway:
        answer = await gateway.chat(n=3, stream=True)

    assert len(text_of(answer.body)) == 3 * len("Grüße aus 東京")
    assert payloads(answer.body)[-1] == "[DONE]"
