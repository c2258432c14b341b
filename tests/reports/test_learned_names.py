"""Reports about names of tools that a provider refuses: the client's come back whatever the target was told."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from adapters.tool_names import own_name, plain_name
from tests.fakes.openai_answers import DONE, delta, refusal, stream
from tests.fakes.raw_client import Answer
from tests.fakes.scripted_server import RecordedRequest, Script
from tests.reports.field import USER, WEATHER, Json, call, heard, hello, in_front_of, saying

DOTTED = "mcp.server/get_weather"
LONG = "mcp__a_server_with_a_long_name__" * 3 + "get_weather"
PATTERN = re.compile(r"[a-zA-Z0-9_-]{1,64}")
WORDS = "Invalid 'tools[0].function.name': string does not match pattern. Expected a string that matches the pattern "
REFUSALS = [
    pytest.param(f"{WORDS}'^[a-zA-Z0-9_-]+$'.", id="mcp-use/mcp-use#90"),
    pytest.param("tools.7.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'",
                 id="apify/tester-mcp-client#11"),
    pytest.param("GenerateContentRequest.tools[0].function_declarations[18].name: Invalid function name. Must start "
                 "with a letter or an underscore.", id="google-gemini/gemini-cli#2966"),
    pytest.param("Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64, but got "
                 "a string with length 107 instead.", id="OpenAI's own words"),
    pytest.param("Function name was mcp.server but must be a-z, A-Z, 0-9, or contain underscores and dashes, with a "
                 "maximum length of 64.", id="Mistral's templates"),
]  # fmt: skip


def _tool(name: str) -> Json:
    return {**WEATHER, "function": {**WEATHER["function"], "name": name}}


def _names(body: Json) -> list[str]:
    """All names of functions in *body*."""
    made = [made for message in body["messages"] for made in message.get("tool_calls", ())]
    holders = [*body.get("tools", ()), *made, body.get("tool_choice")]
    told = [one["name"] for one in body["messages"] if "name" in one]
    return [one["function"]["name"] for one in holders if isinstance(one, dict)] + told


def _calling(body: Json, *, again: bool = False) -> Script:
    """A call of the first tool by the name it was offered by, streamed in pieces where that is asked for."""
    name = body["tools"][0]["function"]["name"]
    if not body.get("stream"):
        return [saying({"content": None, "tool_calls": [call("call_1", name)]}, "tool_calls")]
    named = {"name": name} if again else {}
    first = {"index": 0, "id": "call_1", "type": "function", "function": {"name": name, "arguments": ""}}
    rest = [{"index": 0, "function": {**named, "arguments": piece}} for piece in ('{"city":', '"Oslo"}')]
    return stream(
        delta(role="assistant", content=None, tool_calls=[first]),
        *(delta(tool_calls=[piece]) for piece in rest),
        delta("tool_calls"),
        DONE,
    )


def _made(answer: Answer, *, streamed: bool) -> tuple[str, Any]:
    if streamed:
        assert answer.body.count(b'"name"') == 1  # clients join what comes of it
        (made,) = heard(answer).tools
        return made
    (whole,) = answer.json["choices"][0]["message"]["tool_calls"]
    return whole["function"]["name"], json.loads(whole["function"]["arguments"])


@pytest.mark.parametrize("again", [False, True], ids=["named once", "named in each piece"])
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", [DOTTED, LONG])
@pytest.mark.parametrize("words", REFUSALS)
async def test_tools_are_renamed_for_the_target_alone(words: str, name: str, streamed: bool, again: bool) -> None:
    def script(request: RecordedRequest) -> Script:
        body = json.loads(request.body)
        odd = not all(map(PATTERN.fullmatch, _names(body)))
        return [refusal(400, words)] if odd else _calling(body, again=again)

    async with in_front_of(script) as field:
        for _ in range(2):
            answer = await field.ask(tools=[_tool(name)], stream=streamed)
            assert answer.status == 200, answer.body
            assert _made(answer, streamed=streamed) == (name, {"city": "Oslo"})
            assert "tools=renamed" in answer.headers["x-gateway-adjusted"]

        assert len(field.sent) == 3


async def test_the_choice_and_past_calls_are_renamed_alike() -> None:
    def script(request: RecordedRequest) -> Script:
        body = json.loads(request.body)
        words = "Invalid 'messages[1].tool_calls[0].function.name': string does not match pattern."
        return [refusal(400, words)] if not all(map(PATTERN.fullmatch, _names(body))) else _calling(body)

    messages = [
        USER,
        {"role": "assistant", "content": None, "tool_calls": [call("call_1", DOTTED), call("call_2", "old.tool")]},
        {"role": "tool", "tool_call_id": "call_1", "name": DOTTED, "content": "4"},
        {"role": "tool", "tool_call_id": "call_2", "content": "4"},
    ]
    choice = {"type": "function", "function": {"name": DOTTED}}
    async with in_front_of(script) as field:
        answer = await field.ask(messages=messages, tools=[_tool(DOTTED), _tool("get_time")], tool_choice=choice)

        assert answer.status == 200, answer.body
        assert _made(answer, streamed=False)[0] == DOTTED
        there, old = plain_name(DOTTED), plain_name("old.tool")
        assert _names(field.sent[-1]) == [there, "get_time", there, old, there, there]


async def test_functions_in_the_old_words_are_renamed_as_well() -> None:
    def script(request: RecordedRequest) -> Script:
        body = json.loads(request.body)
        odd = not all(map(PATTERN.fullmatch, _names(body)))
        return [refusal(400, f"{WORDS}'^[a-zA-Z0-9_-]+$'.")] if odd else _calling(body)

    async with in_front_of(script) as field:
        answer = await field.ask(functions=[_tool(DOTTED)["function"]], function_call={"name": DOTTED})

        assert answer.status == 200, answer.body
        assert answer.json["choices"][0]["message"]["function_call"]["name"] == DOTTED


@pytest.mark.parametrize(
    ("tools", "words", "headers"),
    [
        ([_tool(DOTTED)], f"{WORDS}'^[a-zA-Z0-9_-]+$'.", ["x-gateway-unsupported: reject"]),
        ([WEATHER], f"{WORDS}'^[a-zA-Z0-9_-]+$'.", []),
        ([_tool(DOTTED)], "Tool names must be unique.", []),
    ],
    ids=["as asked", "names that are plain", "another rule"],
)
async def test_other_refusals_of_names_are_passed_on(tools: list[Json], words: str, headers: list[str]) -> None:
    async with in_front_of([refusal(400, words)]) as field:
        answer = await field.ask(*headers, tools=tools)

        assert (answer.status, len(field.sent)) == (400, 1)


async def test_names_stay_where_they_are_taken() -> None:
    async with in_front_of(hello) as field:
        answer = await field.ask(tools=[_tool(DOTTED)])

        assert _names(field.sent[0]) == [DOTTED]
        assert "x-gateway-adjusted" not in answer.headers


def test_names_are_told_apart_both_ways() -> None:
    names = ["a.b", "a/b", "a_b", "a b", "1a", "é", LONG, f"{LONG}2"]
    there = [plain_name(name) for name in names]

    assert len(set(there)) == len(names)
    assert all(map(PATTERN.fullmatch, there))
    assert there[2] == "a_b"
    assert [own_name(names, one) for one in there if one != "a_b"] == [name for name in names if name != "a_b"]
    assert own_name(["get.it"], "get_it") == "get.it"  # a model that leaves the mark out
    assert own_name(["a.b", "a/b"], "a_b") is None
