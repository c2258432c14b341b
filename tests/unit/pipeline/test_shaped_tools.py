"""Tools on providers that have none, or none that can be forced."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes.gateway import HELLO, running_gateway
from tests.fakes.openai_answers import payloads, text_of
from tests.fakes.scripted_server import ScriptedServer
from tests.fakes.shapes import (
    ADA,
    AS_PERSON,
    LOOK,
    PERSON,
    WAIT,
    calls_of,
    in_turn,
    lacking,
    said,
    sent,
    text_of_whole,
)
from tests.unit.pipeline.emulated_tools import (
    BY_NAME,
    CALLING,
    HERE,
    NO_TOOLS,
    NOT_FORCED,
    SPEAKING,
    finish_of,
    schema_of,
)


async def test_a_call_is_asked_for_by_a_schema_and_told_in_words() -> None:
    async with ScriptedServer([CALLING]) as server, running_gateway(lacking(server, overrides=NO_TOOLS)) as gateway:
        answer = await gateway.chat(tools=[LOOK, WAIT], tool_choice="auto", parallel_tool_calls=True)

        assert (calls_of(answer), finish_of(answer)) == ([("look", HERE)], "tool_calls"), answer.body
        (body,) = sent(server)
        assert not {"tools", "tool_choice", "parallel_tool_calls"} & body.keys()
        assert body["messages"][0]["role"] == "system"
        assert "Look somewhere" in body["messages"][0]["content"]
        speaking, calling = schema_of(body)["anyOf"]
        assert speaking["required"] == ["answer"]
        assert calling["properties"]["tool_calls"]["maxItems"] > 1
        assert answer.headers["x-gateway-adjusted"] == "tools=emulated"
    message = answer.json["choices"][0]["message"]
    assert message["content"] is None
    assert message["tool_calls"][0]["id"].startswith("call_")
    assert message["tool_calls"][0]["type"] == "function"


async def test_a_model_that_may_speak_speaks() -> None:
    async with ScriptedServer([SPEAKING]) as server, running_gateway(lacking(server, overrides=NO_TOOLS)) as gateway:
        answer = await gateway.chat(tools=[LOOK])

    assert (text_of_whole(answer), finish_of(answer)) == ("Nothing to see.", "stop")
    assert "tool_calls" not in answer.json["choices"][0]["message"]


async def test_the_same_as_a_stream() -> None:
    async with (
        ScriptedServer(in_turn(CALLING, SPEAKING)) as server,
        running_gateway(lacking(server, overrides=NO_TOOLS)) as gateway,
    ):
        calling = await gateway.chat(tools=[LOOK], stream=True, stream_options={"include_usage": True})
        speaking = await gateway.chat(tools=[LOOK], stream=True)

    told = payloads(calling.body)
    (call,) = told[0]["choices"][0]["delta"]["tool_calls"]
    assert (call["index"], json.loads(call["function"]["arguments"])) == (0, HERE)
    assert told[1]["choices"][0]["finish_reason"] == "tool_calls"
    assert told[2]["usage"]["prompt_tokens"] == 9
    assert text_of(speaking.body) == "Nothing to see."


async def test_every_call_has_an_id_of_its_own() -> None:
    both = said(json.dumps({"tool_calls": [{"name": "look", "arguments": HERE}, {"name": "wait", "arguments": {}}]}))
    async with ScriptedServer([both]) as server, running_gateway(lacking(server, overrides=NO_TOOLS)) as gateway:
        answer = await gateway.chat(tools=[LOOK, WAIT])

    assert calls_of(answer) == [("look", HERE), ("wait", {})]
    made = {call["id"] for call in answer.json["choices"][0]["message"]["tool_calls"]}
    assert len(made) == 2


async def test_a_model_that_must_call_has_no_other_way() -> None:
    async with ScriptedServer([CALLING]) as server, running_gateway(lacking(server, overrides=NO_TOOLS)) as gateway:
        answer = await gateway.chat(tools=[LOOK, WAIT], tool_choice="required")

        assert calls_of(answer) == [("look", HERE)]
        schema = schema_of(sent(server)[0])
        assert schema["required"] == ["tool_calls"]
        names = [item["properties"]["name"]["enum"] for item in schema["properties"]["tool_calls"]["items"]["anyOf"]]
        assert names == [["look"], ["wait"]]


async def test_a_single_call_is_all_that_is_asked_for_without_parallel_ones() -> None:
    async with ScriptedServer([CALLING]) as server, running_gateway(lacking(server, overrides=NO_TOOLS)) as gateway:
        await gateway.chat(tools=[LOOK, WAIT], tool_choice="required", parallel_tool_calls=False)

        assert schema_of(sent(server)[0])["properties"]["tool_calls"]["maxItems"] == 1


@pytest.mark.parametrize("facts", [NO_TOOLS, NOT_FORCED])
async def test_a_named_tool_is_asked_for_by_its_own_schema(facts: dict[str, Any]) -> None:
    script = [said(json.dumps(HERE))]
    async with ScriptedServer(script) as server, running_gateway(lacking(server, overrides=facts)) as gateway:
        answer = await gateway.chat(tools=[LOOK, WAIT], tool_choice=BY_NAME)

        assert (calls_of(answer), finish_of(answer)) == ([("look", HERE)], "tool_calls")
        body = sent(server)[-1]
        assert schema_of(body) == LOOK["function"]["parameters"]  # type: ignore[index]  # a plain literal
        assert "wait" not in body["messages"][0]["content"]


async def test_no_tools_are_told_of_where_none_may_be_called() -> None:
    async with (
        ScriptedServer([said("Hello.")]) as server,
        running_gateway(lacking(server, overrides=NO_TOOLS)) as gateway,
    ):
        answer = await gateway.chat(tools=[LOOK], tool_choice="none")

        assert text_of_whole(answer) == "Hello."
        (body,) = sent(server)
        assert body["messages"] == [HELLO]
        assert not {"tools", "tool_choice", "response_format"} & body.keys()


async def test_what_came_of_earlier_calls_is_retold() -> None:
    def call(call_id: str, name: str) -> dict[str, Any]:
        return {"id": call_id, "type": "function", "function": {"name": name, "arguments": '{"place":"here"}'}}

    history = [
        HELLO,
        {"role": "assistant", "content": None, "tool_calls": [call("a", "look"), call("b", "wait")]},
        {"role": "tool", "tool_call_id": "a", "content": "a lake"},
        {"role": "tool", "tool_call_id": "b", "content": [{"type": "text", "text": "done"}]},
        {"role": "user", "content": "And now?"},
    ]
    async with ScriptedServer([SPEAKING]) as server, running_gateway(lacking(server, overrides=NO_TOOLS)) as gateway:
        await gateway.chat(messages=history, tools=[LOOK])
        await gateway.chat(messages=history)

        for body in sent(server):
            messages = [message for message in body["messages"] if message["role"] != "system"]
            assert [message["role"] for message in messages] == ["user", "assistant", "user", "user"]
            assert json.loads(messages[1]["content"])["tool_calls"][0] == {"name": "look", "arguments": HERE}
            assert messages[2]["content"] == "Result of look: a lake\nResult of wait: done"
        assert "response_format" not in sent(server)[1]


async def test_arguments_that_the_tool_does_not_take_are_asked_for_again_and_then_given_up() -> None:
    wrong = said(json.dumps({"tool_calls": [{"name": "look", "arguments": {"spot": 5}}]}))
    async with (
        ScriptedServer(in_turn(wrong, CALLING, wrong)) as server,
        running_gateway(lacking(server, overrides=NO_TOOLS)) as gateway,
    ):
        mended = await gateway.chat(tools=[LOOK])
        given_up = await gateway.chat(tools=[LOOK])

    assert calls_of(mended) == [("look", HERE)]
    assert (given_up.status, given_up.error["code"]) == (502, "schema_validation_failed")


@pytest.mark.parametrize(
    ("choice", "written", "text", "arguments"),
    [
        ("auto", '{"answer": "The weather is f\\u00fc', "The weather is fü", None),
        ("auto", '{"tool_calls": [{"na', "", None),
        (BY_NAME, '{"place": "he', None, '{"place": "he'),
    ],
)
async def test_an_answer_that_was_cut_says_so(
    choice: Any, written: str, text: str | None, arguments: str | None
) -> None:
    async with (
        ScriptedServer([said(written, "length")]) as server,
        running_gateway(lacking(server, overrides=NO_TOOLS)) as gateway,
    ):
        answer = await gateway.chat(tools=[LOOK], tool_choice=choice, max_tokens=5)

    message = answer.json["choices"][0]["message"]
    assert (answer.status, finish_of(answer), message["content"]) == (200, "length", text)
    assert (message["tool_calls"][0]["function"]["arguments"] if arguments else None) == arguments


async def test_a_stop_cuts_the_words_and_not_the_json_around_them() -> None:
    async with ScriptedServer([SPEAKING]) as server, running_gateway(lacking(server, overrides=NO_TOOLS)) as gateway:
        answer = await gateway.chat(tools=[LOOK], stop=[" to"])

        assert text_of_whole(answer) == "Nothing"
        assert "stop" not in sent(server)[0]


async def test_tools_and_a_schema_are_emulated_one_after_the_other() -> None:
    async with (
        ScriptedServer(in_turn(SPEAKING, said(ADA))) as server,
        running_gateway(lacking(server, overrides=NO_TOOLS)) as gateway,
    ):
        answer = await gateway.chat(tools=[LOOK], response_format=AS_PERSON)

        assert text_of_whole(answer) == ADA
        assert schema_of(sent(server)[1]) == PERSON


async def test_a_schema_of_a_tool_may_refer_to_itself() -> None:
    node = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
        "required": ["name"],
    }
    tree = {"type": "object", "properties": {"root": {"$ref": "#/$defs/node"}}, "$defs": {"node": node}}
    tool = {"type": "function", "function": {"name": "plant", "parameters": tree}}
    arguments = {"root": {"name": "a", "children": [{"name": "b"}]}}
    good = said(json.dumps({"tool_calls": [{"name": "plant", "arguments": arguments}]}))
    bad = said(json.dumps({"tool_calls": [{"name": "plant", "arguments": {"root": {"children": [{}]}}}]}))
    async with (
        ScriptedServer(in_turn(bad, good)) as server,
        running_gateway(lacking(server, overrides=NO_TOOLS)) as gateway,
    ):
        answer = await gateway.chat(tools=[tool, LOOK])

        assert calls_of(answer) == [("plant", arguments)]
        assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("wrong", "param"),
    [
        ({"tool_choice": {"type": "function", "function": {"name": "run"}}}, "tool_choice"),
        ({"tool_choice": "perhaps"}, "tool_choice"),
        ({"tools": [{"type": "retrieval"}]}, "tools[0]"),
        ({"tools": [LOOK, LOOK]}, "tools[1].function.name"),
        ({"tools": [{"type": "function", "function": {"name": "x", "parameters": {"type": "nonsense"}}}]},
         "tools[0].function.parameters"),
    ],
)  # fmt: skip
async def test_tools_that_are_none_are_refused_before_anything_is_sent(wrong: dict[str, Any], param: str) -> None:
    async with ScriptedServer([CALLING]) as server, running_gateway(lacking(server, overrides=NO_TOOLS)) as gateway:
        answer = await gateway.chat(**{"tools": [LOOK], **wrong})

        assert (answer.status, answer.error["param"]) == (400, param), answer.body
        assert not server.requests


async def test_log_probabilities_of_an_emulated_call_are_refused() -> None:
    async with ScriptedServer([CALLING]) as server, running_gateway(lacking(server, overrides=NO_TOOLS)) as gateway:
        answer = await gateway.chat(tools=[LOOK], logprobs=True)

        assert (answer.status, answer.error["param"]) == (400, "logprobs")
        assert not server.requests


async def test_a_client_that_wants_no_emulation_gets_none() -> None:
    async with ScriptedServer([CALLING]) as server, running_gateway(lacking(server, overrides=NO_TOOLS)) as gateway:
        answer = await gateway.chat("x-gateway-unsupported: reject", tools=[LOOK])

        assert (answer.status, answer.error["code"], answer.error["param"]) == (400, "unsupported_parameter", "tools")
        assert not server.requests
