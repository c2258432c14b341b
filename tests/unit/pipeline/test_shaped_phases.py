"""A format beside tools takes two phases; one that cannot be streamed is told as a stream."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.gateway import CHAT, chat_body, request, running_gateway
from tests.fakes.openai_answers import DONE, ROLE, STOP, payloads, refusal, stream, text_of, usage_chunk, words
from tests.fakes.scripted_server import Hang, Script, ScriptedServer, Sleep
from tests.fakes.shapes import ADA, AS_PERSON, LOOK, called, calls_of, in_turn, lacking, said, sent, text_of_whole

EITHER = {"conflicts": [{"when": ["tools", "response_format"], "result": 400, "patch": "two_phase"}]}
NOT_STREAMED = {"conflicts": [{"when": ["stream", "response_format"], "result": 400, "patch": "fake_stream"}]}


# Tools and a format


async def test_a_call_in_the_first_phase_is_the_answer() -> None:
    async with ScriptedServer([called()]) as server, running_gateway(lacking(server, overrides=EITHER)) as gateway:
        answer = await gateway.chat(tools=[LOOK], response_format=AS_PERSON)

        assert calls_of(answer) == [("look", {"place": "here"})]
        (body,) = sent(server)
        assert "response_format" not in body
        assert answer.headers["x-gateway-adjusted"] == "response_format=split"


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_text_in_the_first_phase_is_followed_by_the_format_without_tools(streamed: bool) -> None:
    second: bytes | Script = stream(ROLE, *words(ADA), STOP, usage_chunk(), DONE) if streamed else said(ADA)
    script = in_turn(said("I know her."), second)
    async with ScriptedServer(script) as server, running_gateway(lacking(server, overrides=EITHER)) as gateway:
        answer = await gateway.chat(
            tools=[LOOK], response_format=AS_PERSON, stream=streamed, tool_choice="auto", parallel_tool_calls=False
        )
        row = await gateway.row()

        assert (text_of(answer.body) if streamed else text_of_whole(answer)) == ADA
        first, further = sent(server)
        assert "response_format" not in first
        assert not {"tools", "tool_choice", "parallel_tool_calls"} & further.keys()
        assert further["response_format"] == AS_PERSON
        assert further.get("stream", False) is streamed
    assert (row["prompt_tokens"], row["completion_tokens"]) == (18, 6)


async def test_the_usage_at_the_end_of_a_stream_is_that_of_both_phases() -> None:
    script = in_turn(said("I know her."), stream(ROLE, *words(ADA), STOP, usage_chunk(), DONE))
    async with ScriptedServer(script) as server, running_gateway(lacking(server, overrides=EITHER)) as gateway:
        answer = await gateway.chat(
            tools=[LOOK], response_format=AS_PERSON, stream=True, stream_options={"include_usage": True}
        )

    assert payloads(answer.body)[-2]["usage"] == {"prompt_tokens": 18, "completion_tokens": 6, "total_tokens": 24}


async def test_a_first_phase_that_conforms_by_itself_is_enough() -> None:
    async with ScriptedServer([said(ADA)]) as server, running_gateway(lacking(server, overrides=EITHER)) as gateway:
        answer = await gateway.chat(tools=[LOOK], response_format=AS_PERSON)

        assert text_of_whole(answer) == ADA
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("choice", "absent"),
    [
        ("required", "response_format"),
        ({"type": "function", "function": {"name": "look"}}, "response_format"),
        ("none", "tools"),
    ],
)
async def test_one_phase_is_enough_where_the_choice_leaves_nothing_open(choice: Any, absent: str) -> None:
    script = in_turn(said(ADA) if absent == "tools" else called())
    async with ScriptedServer(script) as server, running_gateway(lacking(server, overrides=EITHER)) as gateway:
        answer = await gateway.chat(tools=[LOOK], response_format=AS_PERSON, tool_choice=choice)

        assert answer.status == 200
        (body,) = sent(server)
        assert absent not in body


async def test_a_refusal_of_the_second_phase_is_that_of_the_request() -> None:
    script = in_turn(said("I know her."), refusal(429, "slow down"))
    async with ScriptedServer(script) as server, running_gateway(lacking(server, overrides=EITHER)) as gateway:
        answer = await gateway.chat(tools=[LOOK], response_format=AS_PERSON)
        row = await gateway.row()

    assert answer.status == 429
    assert (row["prompt_tokens"], row["completion_tokens"]) == (9, 3)  # the first phase was answered


async def test_a_client_that_leaves_between_the_phases_is_noticed() -> None:
    script = in_turn(said("I know her."), [Hang()])
    async with ScriptedServer(script) as server, running_gateway(lacking(server, overrides=EITHER)) as gateway:
        client = await gateway.connect()
        await client.send(request(CHAT, chat_body(tools=[LOOK], response_format=AS_PERSON, stream=True)))
        await server.wait_until(lambda server: len(server.requests) == 2)
        await client.close()

        await server.wait_until(lambda server: server.open_connections <= 1, seconds=0.25)
        assert (await gateway.row())["status"] == 499


# Streams that are none


async def test_what_cannot_be_streamed_is_asked_whole_and_told_as_a_stream() -> None:
    async with (
        ScriptedServer([said(ADA)]) as server,
        running_gateway(lacking(server, overrides=NOT_STREAMED)) as gateway,
    ):
        answer = await gateway.chat(response_format=AS_PERSON, stream=True)

        assert text_of(answer.body) == ADA
        assert payloads(answer.body)[-1] == "[DONE]"
        assert "stream" not in sent(server)[0]
        assert "stream_options" not in sent(server)[0]
        assert answer.headers["x-gateway-adjusted"] == "stream=emulated"


async def test_the_client_hears_comments_while_it_waits_for_what_is_not_streamed() -> None:
    async with ScriptedServer([Sleep(0.15), said(ADA)]) as server:
        settings = lacking(server, overrides=NOT_STREAMED)
        async with running_gateway({**settings, "server": {"stream_keepalive": "50ms"}}) as gateway:
            answer = await gateway.chat(response_format=AS_PERSON, stream=True)

    assert answer.body.startswith(b": keep-alive\n\n")
    assert text_of(answer.body) == ADA


async def test_a_stream_without_a_format_stays_one() -> None:
    script = in_turn(stream(ROLE, *words("Hello"), STOP, usage_chunk(), DONE))
    async with ScriptedServer(script) as server, running_gateway(lacking(server, overrides=NOT_STREAMED)) as gateway:
        answer = await gateway.chat(stream=True)

        assert text_of(answer.body) == "Hello"
        assert sent(server)[0]["stream"] is True
        assert "x-gateway-adjusted" not in answer.headers
