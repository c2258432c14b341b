"""Tools that are there, and cannot be forced."""

from __future__ import annotations

import pytest

from tests.fakes.gateway import HELLO, running_gateway
from tests.fakes.openai_answers import DONE, ROLE, STOP, stream, text_of, usage_chunk, words
from tests.fakes.scripted_server import ScriptedServer
from tests.fakes.shapes import (
    LOOK,
    WAIT,
    called,
    calls_of,
    in_turn,
    lacking,
    said,
    sent,
)
from tests.unit.pipeline.emulated_tools import (
    BY_NAME,
    CALLING,
    HERE,
    NO_TOOLS,
    NOT_FORCED,
    schema_of,
)


async def test_what_need_not_be_forced_goes_as_it_is() -> None:
    async with ScriptedServer([called()]) as server, running_gateway(lacking(server, overrides=NOT_FORCED)) as gateway:
        answer = await gateway.chat(tools=[LOOK], tool_choice="auto")

        assert calls_of(answer) == [("look", HERE)]
        assert sent(server)[0]["tools"] == [LOOK]
        assert "x-gateway-adjusted" not in answer.headers


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_model_that_cannot_be_forced_is_asked_freely_first(streamed: bool) -> None:
    async with ScriptedServer([called()]) as server, running_gateway(lacking(server, overrides=NOT_FORCED)) as gateway:
        answer = await gateway.chat(tools=[LOOK, WAIT], tool_choice="required", stream=streamed)

        (body,) = sent(server)
        assert body["tools"] == [LOOK, WAIT]
        assert "tool_choice" not in body
        assert answer.headers["x-gateway-adjusted"] == "tool_choice=emulated"
    assert b'"tool_calls"' in answer.body


async def test_only_the_named_tool_is_offered() -> None:
    async with ScriptedServer([called()]) as server, running_gateway(lacking(server, overrides=NOT_FORCED)) as gateway:
        await gateway.chat(tools=[WAIT, LOOK], tool_choice=BY_NAME)

        assert sent(server)[0]["tools"] == [LOOK]


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_model_that_does_not_call_by_itself_is_bound_by_a_schema(streamed: bool) -> None:
    script = in_turn(said("Let me think."), CALLING)
    async with ScriptedServer(script) as server, running_gateway(lacking(server, overrides=NOT_FORCED)) as gateway:
        answer = await gateway.chat(
            tools=[LOOK, WAIT], tool_choice="required", stream=streamed, stream_options={"include_usage": True}
        )

        _, body = sent(server)
        assert "tools" not in body
        assert schema_of(body)["required"] == ["tool_calls"]
    assert b'"tool_calls"' in answer.body
    assert b"Let me think" not in answer.body
    assert b'"total_tokens":24' in answer.body


async def test_a_model_that_has_to_call_is_shown_first_what_it_has_not_called_yet() -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"place":"here"}'}}
    history = [
        HELLO,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "Nothing."},
    ]
    script = in_turn(said("Hm."), said('{"tool_calls":[{"name":"wait","arguments":{}}]}'))
    async with ScriptedServer(script) as server, running_gateway(lacking(server, overrides=NOT_FORCED)) as gateway:
        answer = await gateway.chat(messages=history, tools=[LOOK, WAIT], tool_choice="required")

        free, bound = sent(server)
        assert free["tools"] == [LOOK, WAIT]
        first, second = schema_of(bound)["properties"]["tool_calls"]["items"]["anyOf"]
        assert first["properties"]["name"]["enum"] == ["wait"]
        assert second["properties"]["name"]["enum"] == ["look"]
    assert calls_of(answer) == [("wait", {})]


async def test_a_stream_of_text_is_still_one_where_tools_are_emulated_for_others() -> None:
    script = in_turn(stream(ROLE, *words("Hello"), STOP, usage_chunk(), DONE))
    async with ScriptedServer(script) as server, running_gateway(lacking(server, overrides=NO_TOOLS)) as gateway:
        answer = await gateway.chat(stream=True)

        assert text_of(answer.body) == "Hello"
        assert sent(server)[0]["stream"] is True
