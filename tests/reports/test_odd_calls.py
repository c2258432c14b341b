"""Reports about calls of tools whose names and arguments are there, with something around them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes.openai_answers import DONE, ROLE, delta, stream
from tests.reports.field import CLOCK, WEATHER, Json, call, heard, in_front_of, saying
from tests.reports.test_tool_streams import OSLO, WHOLE, part, parts

BEGUN = part("{}", "get_weather", index=0, id="call_a")

BEGINNINGS: list[Any] = [
    pytest.param(parts(BEGUN, part('{"city":', index=0), part('"Oslo"}', index=0)), OSLO, id="BerriAI/litellm#4537"),
    pytest.param(parts(BEGUN, part("", index=0), part(WHOLE, index=0)), OSLO, id="envoyproxy/ai-gateway#1465"),
    pytest.param(parts(part("null", "get_weather", index=0, id="call_a"), part(WHOLE, index=0)), OSLO, id="null first"),
    pytest.param(parts(BEGUN), {}, id="an empty object alone"),
    pytest.param(parts(BEGUN, part("{}", index=0)), {}, id="an empty object twice"),
    pytest.param(parts(part("null", "get_weather", index=0, id="call_a")), {}, id="null alone"),
    pytest.param(parts(part(json.dumps(WHOLE), "get_weather", index=0, id="call_a")), OSLO, id="encoded twice"),
]  # fmt: skip


@pytest.mark.parametrize("provider", ["openai_compatible", "vllm", "groq"])
@pytest.mark.parametrize(("script", "expected"), BEGINNINGS)
async def test_arguments_add_up_to_an_object_however_they_begin(script: Any, expected: Json, provider: str) -> None:
    async with in_front_of(script, provider) as field:
        found = heard(await field.ask(tools=[WEATHER, CLOCK], stream=True))

    assert found.tools == [("get_weather", expected)]
    assert (found.finish, found.done) == ({0: "tool_calls"}, True)


async def test_calls_that_begin_with_nothing_side_by_side_keep_their_own() -> None:
    other = part("{}", "get_time", index=1, id="call_b")
    async with in_front_of(parts([BEGUN, other], part(WHOLE, index=0))) as field:
        found = heard(await field.ask(tools=[WEATHER, CLOCK], stream=True))

    assert found.tools == [("get_weather", OSLO), ("get_time", {})]


@pytest.mark.parametrize(("arguments", "expected"), [("null", {}), (json.dumps(WHOLE), OSLO), ("{}", {})])
async def test_arguments_of_a_whole_call_are_an_object(arguments: str, expected: Json) -> None:
    script = [saying({"content": None, "tool_calls": [call("c", arguments=arguments)]}, "tool_calls")]
    async with in_front_of(script) as field:
        answer = await field.ask(tools=[WEATHER])

    (made,) = answer.json["choices"][0]["message"]["tool_calls"]
    assert json.loads(made["function"]["arguments"]) == expected


NAMES = ["functions.get_weather", "get_weather<|channel|>commentary", " get_weather", "get_weather ", "get_weather\n"]


@pytest.mark.parametrize("name", NAMES)
async def test_a_tool_is_called_by_the_name_that_the_client_gave_it(name: str) -> None:
    """Clients look tools up by their names; gpt-oss and Kimi write them with marks and prefixes of their own."""
    script = stream(ROLE, delta(tool_calls=[part(WHOLE, name, index=0, id="c")]), delta(finish="tool_calls"), DONE)
    async with in_front_of(script, "vllm", "openai/gpt-oss-20b") as field:
        found = heard(await field.ask(tools=[WEATHER, CLOCK], stream=True))
    assert found.tools == [("get_weather", OSLO)]

    whole = [saying({"content": None, "tool_calls": [call("c", name)]}, "tool_calls")]
    async with in_front_of(whole, "vllm", "openai/gpt-oss-20b") as field:
        answer = await field.ask(tools=[WEATHER, CLOCK])
    assert answer.json["choices"][0]["message"]["tool_calls"] == [call("c")]


@pytest.mark.parametrize("name", ["get_wether", "functions.get_wether", "functions.get_time.now"])
async def test_a_name_that_no_tool_has_is_the_clients_to_judge(name: str) -> None:
    async with in_front_of([saying({"content": None, "tool_calls": [call("c", name)]}, "tool_calls")]) as field:
        answer = await field.ask(tools=[WEATHER, CLOCK])

    assert answer.json["choices"][0]["message"]["tool_calls"] == [call("c", name)]
