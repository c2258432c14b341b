"""Reports about tools, and the choice among them, said in the words of another API."""

from __future__ import annotations

from typing import Any

import pytest

from tests.reports.field import CLOCK, WEATHER, Json, call, in_front_of, saying

FUNCTION: Json = WEATHER["function"]
NAME, SCHEMA, ABOUT = FUNCTION["name"], FUNCTION["parameters"], FUNCTION["description"]
BARE: Json = {"type": "function", "function": {"name": NAME}}
TYPES = ["openai_compatible", "vllm", "groq", "cerebras", "llama_cpp_server"]

TOOLS: list[Any] = [
    pytest.param({"type": "function", **FUNCTION}, WEATHER, id="BerriAI/litellm#34029"),
    pytest.param({"type": "function", **FUNCTION, "strict": None}, WEATHER, id="the same with a null"),
    pytest.param({"type": "function", "name": NAME}, BARE, id="without arguments"),
    pytest.param({"name": NAME, "description": ABOUT, "input_schema": SCHEMA}, WEATHER, id="decolua/9router#2781"),
    pytest.param({"type": "custom", "name": NAME, "description": ABOUT, "input_schema": SCHEMA}, WEATHER,
                 id="Anthropic's type"),
    pytest.param({"function": FUNCTION}, WEATHER, id="without a type"),
    pytest.param({"type": "function", "function": {**FUNCTION, "strict": None}}, WEATHER, id="a null beside it"),
    pytest.param({"type": "function", "function": {"name": NAME, "description": None, "parameters": None}}, BARE,
                 id="nulls where a server wants an object"),
]  # fmt: skip


@pytest.mark.parametrize("provider", TYPES)
@pytest.mark.parametrize(("given", "sent"), TOOLS)
async def test_a_function_is_offered_in_openais_form_whatever_it_came_in(
    given: Json, sent: Json, provider: str
) -> None:
    async with in_front_of([saying({"content": None, "tool_calls": [call("c")]})], provider) as field:
        answer = await field.ask(tools=[given, CLOCK])

        assert answer.status == 200, answer.body
        assert field.sent[0]["tools"] == [sent, CLOCK]
    assert answer.json["choices"][0]["finish_reason"] == "tool_calls"


OWN: list[Json] = [
    {"type": "web_search"},
    {"type": "custom", "custom": {"name": "sql", "format": {"type": "text"}}},
    {"type": "mcp", "name": "docs", "server_url": "https://mcp.example"},
    {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "default": None}}},
]


@pytest.mark.parametrize("tool", OWN, ids=str)
async def test_what_else_stands_among_the_tools_is_the_targets_business(tool: Json) -> None:
    async with in_front_of() as field:
        await field.ask(tools=[tool, WEATHER])

        assert field.sent[0]["tools"] == [tool, WEATHER]


NAMED: Json = {"type": "function", "function": {"name": NAME}}
CHOICES: list[Any] = [
    pytest.param({"type": "auto"}, "auto", id="Anthropic's words for it"),
    pytest.param({"type": "auto", "disable_parallel_tool_use": True}, "auto", id="with a member of Anthropic's"),
    pytest.param({"type": "any"}, "required", id="any"),
    pytest.param({"type": "none"}, "none", id="none"),
    pytest.param({"type": "tool", "name": NAME}, NAMED, id="a tool by name"),
    pytest.param({"type": "function", "name": NAME}, NAMED, id="a function by name, as in responses"),
    pytest.param({"function": {"name": NAME}}, NAMED, id="without a type"),
    pytest.param("", None, id="nothing"),
    pytest.param("auto", "auto", id="a word"),
    pytest.param(NAMED, NAMED, id="OpenAI's own"),
]  # fmt: skip


@pytest.mark.parametrize("provider", ["openai_compatible", "vllm", "groq", "fireworks"])
@pytest.mark.parametrize(("given", "sent"), CHOICES)
async def test_the_choice_of_a_tool_is_said_in_openais_form(given: Any, sent: Any, provider: str) -> None:
    async with in_front_of([saying({"content": None, "tool_calls": [call("c")]})], provider) as field:
        answer = await field.ask(tools=[WEATHER], tool_choice=given)

        assert answer.status == 200, answer.body
        assert field.sent[0].get("tool_choice") == sent


async def test_a_choice_that_makes_no_sense_is_refused() -> None:
    async with in_front_of() as field:
        senseless = ({"type": 1}, {"type": "function"}, {"name": None}, 5)
        allowed: tuple[Any, ...] = (5, None, {}, {"tools": None}, {"tools": [5]}, {"tools": [], "mode": "some"})
        for choice in (*senseless, *({"type": "allowed_tools", "allowed_tools": one} for one in allowed)):
            answer = await field.ask(tools=[WEATHER], tool_choice=choice)
            assert (answer.status, answer.error["param"]) == (400, "tool_choice")

        assert field.sent == []


@pytest.mark.parametrize("provider", ["openai_compatible", "groq"])
async def test_a_choice_that_allows_one_call_says_so_beside_it(provider: str) -> None:
    async with in_front_of([saying({"content": None, "tool_calls": [call("a"), call("b")]})], provider) as field:
        await field.ask(tools=[WEATHER], tool_choice={"type": "any", "disable_parallel_tool_use": True})
        await field.ask(tools=[WEATHER], tool_choice={"type": "any", "disable_parallel_tool_use": False})

        assert [body.get("parallel_tool_calls") for body in field.sent] == [False, None]


ONE: Json = {"type": "function", "name": NAME}
ALLOWED: list[Any] = [
    pytest.param({"mode": "required", "tools": [ONE]}, id="responses"),
    pytest.param({"allowed_tools": {"mode": "required", "tools": [ONE]}}, id="a mixture"),
    pytest.param({"allowed_tools": {"mode": "required", "tools": [NAMED]}}, id="OpenAI's own"),
]


@pytest.mark.parametrize("choice", ALLOWED)
async def test_tools_that_alone_are_allowed_are_the_only_ones_of_the_request(choice: Json) -> None:
    async with in_front_of([saying({"content": None, "tool_calls": [call("c")]})]) as field:
        answer = await field.ask(tools=[WEATHER, CLOCK], tool_choice={"type": "allowed_tools", **choice})

        assert answer.status == 200, answer.body
        assert (field.sent[0]["tools"], field.sent[0]["tool_choice"]) == ([WEATHER], "required")


@pytest.mark.parametrize("choice", ALLOWED)
async def test_tools_that_alone_are_allowed_can_be_emulated(choice: Json) -> None:
    lacking = {"params": {"tools": {"support": "rejected", "status": 400, "patch": "emulate_tools"}}}
    said = '{"tool": "get_weather", "arguments": {"city": "Oslo"}}'
    async with in_front_of([saying({"content": said})], overrides=lacking) as field:
        await field.ask(tools=[WEATHER, CLOCK], tool_choice={"type": "allowed_tools", **choice})

        assert b"get_weather" in field.server.requests[0].body
        assert b"get_time" not in field.server.requests[0].body
