"""One of several requests fails, or the client leaves: what becomes of the others and of the answer."""

from __future__ import annotations

import pytest

from tests.fakes.gateway import CHAT, chat_body, request, running_gateway
from tests.fakes.openai_answers import ROLE, event, payloads, refusal, stream, whole, words
from tests.fakes.scripted_server import Hang, Reset, Script, ScriptedServer
from tests.unit.pipeline.one_choice import by_seed, settings


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize(
    "broken", [[refusal(503, "busy")], [Reset()], [whole(choices=[])]], ids=["503", "reset", "empty"]
)
async def test_one_child_that_fails_before_content_fails_the_request_and_ends_the_others(
    streamed: bool, broken: Script
) -> None:
    scripts: dict[int, Script] = {1: [Hang()], 2: broken, 3: [Hang()]}
    async with ScriptedServer(by_seed(scripts)) as server, running_gateway(settings(server)) as gateway:
        answer = await gateway.chat(n=3, seed=1, stream=streamed)

        assert answer.status in (502, 503), answer.body
        await server.wait_until(lambda server: server.open_connections <= 1)  # the refused one may be used again
        row = await gateway.row()
    assert row["status"] == answer.status


async def test_a_fallback_answers_after_a_child_has_failed() -> None:
    scripts: dict[int, Script] = {1: [Hang()], 2: [refusal(500)]}
    async with ScriptedServer(by_seed(scripts)) as bad, ScriptedServer([whole("fine")]) as good:
        async with running_gateway(settings(bad, good)) as gateway:
            answer = await gateway.chat(n=2, seed=1)

        assert answer.status == 200
        assert [choice["message"]["content"] for choice in answer.json["choices"]] == ["fine", "fine"]
        assert answer.headers["x-gateway-fallback-from"] == "p1/up1"


async def test_a_child_that_fails_after_content_ends_the_stream_with_an_error_event() -> None:
    scripts: dict[int, Script] = {
        1: stream(ROLE, *words("Hello"), end=False),
        2: [*stream(ROLE, *words("Bye"), end=False), Reset()],
    }
    async with ScriptedServer(by_seed(scripts)) as server, running_gateway(settings(server)) as gateway:
        answer = await gateway.chat(n=2, seed=1, stream=True)

        told = payloads(answer.body)
        assert "error" in told[-1]
        assert b"[DONE]" not in answer.body
        await server.wait_until(lambda server: server.open_connections == 0)
        row = await gateway.row()
    assert row["error_code"]


async def test_an_error_in_one_of_the_streams_is_that_of_the_request() -> None:
    scripts: dict[int, Script] = {
        1: stream(ROLE, *words("Hello"), end=False),
        2: stream(event({"error": {"message": "too many", "type": "rate_limit_error", "code": "rate_limit_exceeded"}})),
    }
    async with ScriptedServer(by_seed(scripts)) as server, running_gateway(settings(server)) as gateway:
        answer = await gateway.chat(n=2, seed=1, stream=True)

    assert b"too many" in answer.body
    assert b"[DONE]" not in answer.body


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_client_that_leaves_takes_all_its_requests_along(streamed: bool) -> None:
    async with ScriptedServer([Hang()]) as server, running_gateway(settings(server)) as gateway:
        client = await gateway.connect()
        await client.send(request(CHAT, chat_body(n=4, stream=streamed)))
        await server.wait_until(lambda server: len(server.requests) == 4)
        await client.close()

        await server.wait_until(lambda server: server.open_connections == 0, seconds=0.25)
        row = await gateway.row()
    assert row["status"] == 499
    assert row["prompt_tokens"] > 0


@pytest.mark.parametrize("streamed", [True, False])
async def test_an_event_that_is_named_an_error_is_one(streamed: bool) -> None:
    script = stream(ROLE, b'event: error\ndata: {"message": "out of memory"}\n\n')
    async with ScriptedServer(script) as server, running_gateway(settings(server)) as gateway:
        answer = await gateway.chat(n=2, stream=streamed)

    assert answer.status >= 500
    assert "out of memory" in answer.error["message"]
