"""Clients that still say functions get calls of functions, from targets that know only tools."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.gateway import HELLO, running_gateway
from tests.fakes.openai_answers import DONE, ROLE, delta, good_stream, payloads, stream, text_of, usage_chunk
from tests.fakes.raw_client import Answer
from tests.fakes.scripted_server import ScriptedServer
from tests.fakes.shapes import LOOK, WAIT, called, in_turn, lacking, said, sent

FUNCTIONS = [LOOK["function"], WAIT["function"]]
NO_TOOLS = {"params": {"tools": {"support": "rejected", "patch": "emulate_tools"}}}
NATIVE = {"extra_params": ["functions", "function_call"]}
CALL = {"name": "look", "arguments": '{"place":"here"}'}


def piece(text: str, index: int = 0, **members: Any) -> bytes:
    return delta(
        tool_calls=[{"index": index, "function": {"arguments": text, **members.pop("function", {})}, **members}]
    )


CALLING = stream(
    ROLE,
    piece("", id="call_1", type="function", function={"name": "look"}),
    piece('{"place":'),
    piece('"here"}'),
    piece("{}", 1, id="call_2", type="function", function={"name": "wait"}),
    delta(finish="tool_calls"),
    usage_chunk(),
    DONE,
)


def call_in(answer: Answer) -> tuple[dict[str, Any], str]:
    """The call of a stream, put together as clients do, and why the stream ended."""
    call, reason = {"name": "", "arguments": ""}, ""
    for one in payloads(answer.body):
        for choice in one["choices"] if isinstance(one, dict) else ():
            assert "tool_calls" not in choice["delta"]
            for name, text in (choice["delta"].get("function_call") or {}).items():
                call[name] += text
            reason = choice["finish_reason"] or reason
    return call, reason


async def test_a_call_is_told_as_one_of_a_function() -> None:
    async with ScriptedServer([called()]) as server, running_gateway(lacking(server, overrides={})) as gateway:
        got = await gateway.chat(functions=FUNCTIONS, function_call="auto")

    assert sent(server)[0]["tools"] == [LOOK, WAIT]
    assert not {"functions", "function_call"} & sent(server)[0].keys()
    choice = got.json["choices"][0]
    assert choice["message"]["function_call"] == CALL
    assert "tool_calls" not in choice["message"]
    assert choice["finish_reason"] == "function_call"
    assert got.headers["x-gateway-adjusted"] == "functions=mapped, function_call=mapped"


async def test_a_stream_of_a_call_is_told_as_one_of_a_function() -> None:
    async with ScriptedServer(CALLING) as server, running_gateway(lacking(server, overrides={})) as gateway:
        got = await gateway.chat(functions=FUNCTIONS, stream=True)

    assert call_in(got) == (CALL, "function_call"), "and of several calls there is the first"


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_a_text_stays_a_text(streamed: bool) -> None:
    script = good_stream() if streamed else [said("Hello there.")]
    async with ScriptedServer(script) as server, running_gateway(lacking(server, overrides={})) as gateway:
        got = await gateway.chat(functions=FUNCTIONS, stream=streamed)

    if streamed:
        assert text_of(got.body) == "Hello there."
    else:
        assert got.json["choices"][0]["message"] == {"role": "assistant", "content": "Hello there."}
        assert got.json["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_where_there_are_no_tools_either_they_are_emulated(streamed: bool) -> None:
    script = [said('{"tool_calls": [{"name": "look", "arguments": {"place": "here"}}]}')]
    async with ScriptedServer(script) as server, running_gateway(lacking(server, overrides=NO_TOOLS)) as gateway:
        got = await gateway.chat(functions=FUNCTIONS, stream=streamed)

    assert "tools" not in sent(server)[0]
    if streamed:
        assert call_in(got) == (CALL, "function_call")
    else:
        assert got.json["choices"][0]["message"]["function_call"] == CALL


async def test_a_named_function_that_is_not_called_is_asked_for_again() -> None:
    script = in_turn(said("No."), said('{"place":"here"}'))
    async with ScriptedServer(script) as server, running_gateway(lacking(server, overrides={})) as gateway:
        got = await gateway.chat(functions=FUNCTIONS, function_call={"name": "look"})

    assert len(sent(server)) == 2
    assert got.json["choices"][0]["message"]["function_call"] == CALL


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_each_of_several_choices_has_its_call(streamed: bool) -> None:
    one_choice = {"params": {"n": {"support": "limited", "max": 1, "patch": "fan_out"}}}
    script = CALLING if streamed else [called()]
    async with ScriptedServer(script) as server, running_gateway(lacking(server, overrides=one_choice)) as gateway:
        got = await gateway.chat(functions=FUNCTIONS, n=2, stream=streamed)

    if streamed:
        named = [
            choice["index"]
            for one in payloads(got.body)
            if isinstance(one, dict)
            for choice in one["choices"]
            if (choice["delta"].get("function_call") or {}).get("name")
        ]
        assert sorted(named) == [0, 1]
    else:
        assert [choice["message"]["function_call"] for choice in got.json["choices"]] == [CALL, CALL]


async def test_a_conversation_of_functions_goes_on_with_tools() -> None:
    history = [
        HELLO,
        {"role": "assistant", "content": None, "function_call": CALL},
        {"role": "function", "name": "look", "content": "dark"},
    ]
    async with ScriptedServer([said("I see.")]) as server, running_gateway(lacking(server, overrides={})) as gateway:
        await gateway.chat(functions=FUNCTIONS, messages=history)

    _, call, result = sent(server)[0]["messages"]
    assert call["tool_calls"][0]["function"] == CALL
    assert (result["role"], result["tool_call_id"]) == ("tool", call["tool_calls"][0]["id"])


async def test_who_knows_functions_gets_them_as_they_are() -> None:
    async with ScriptedServer([said("Hi.")]) as server, running_gateway(lacking(server, overrides=NATIVE)) as gateway:
        got = await gateway.chat(functions=FUNCTIONS, function_call="auto")

    assert sent(server)[0]["functions"] == FUNCTIONS
    assert "x-gateway-adjusted" not in got.headers


async def test_functions_beside_tools_are_a_bad_request() -> None:
    async with ScriptedServer([said("Hi.")]) as server, running_gateway(lacking(server, overrides={})) as gateway:
        got = await gateway.chat(functions=FUNCTIONS, tools=[LOOK])

    assert (got.status, got.error["param"], len(server.requests)) == (400, "functions", 0)


async def test_a_target_without_any_tools_refuses_them_under_the_name_they_came_by() -> None:
    none = {"params": {"tools": {"support": "rejected", "patch": "error"}}}
    async with ScriptedServer([said("Hi.")]) as server, running_gateway(lacking(server, overrides=none)) as gateway:
        got = await gateway.chat(functions=FUNCTIONS)

    assert (got.status, got.error["code"], got.error["param"]) == (400, "unsupported_parameter", "functions")
    assert not server.requests
