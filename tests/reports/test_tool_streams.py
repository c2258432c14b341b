"""Reports about streamed tool calls: parts that clients cannot put together to the call that was meant."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes.openai_answers import DONE, ROLE, STOP, delta, stream, words
from tests.fakes.scripted_server import Script
from tests.reports.field import CLOCK, WEATHER, Json, heard, in_front_of

OSLO: Json = {"city": "Oslo"}
WHOLE = '{"city":"Oslo"}'
END = delta(finish="tool_calls")


def part(arguments: Any = None, name: str | None = None, **members: Any) -> Json:
    """One entry of ``delta.tool_calls``."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {"type": "function", "function": function, **members}


def parts(*deltas: Json | list[Json], end: bytes = END, first: bytes = ROLE) -> Script:
    """A stream of these parts, each in an event of its own unless they come as a list."""
    events = [delta(tool_calls=one if isinstance(one, list) else [one]) for one in deltas]
    return stream(first, *events, end, DONE)


BEGUN = part("", "get_weather", index=0, id="call_a")

STREAMS: list[Any] = [
    pytest.param(parts(BEGUN, part('{"city":', index=0), part('"Oslo"}', index=0)), [("get_weather", OSLO)],
                 id="openai/codex#7517"),
    pytest.param(parts(part('{"city": ', "get_weather", index=0, id="call_a"), part('"Oslo"}', index=0),
                       {"index": 0, "id": None, "type": None,
                        "function": {"name": None, "arguments": '{"city": "Oslo"}'}}),
                 [("get_weather", OSLO)], id="vllm-project/vllm#42167"),
    pytest.param(parts(BEGUN, part('{"city":"Os', index=0), part('lo"}', index=0),
                       part(WHOLE, "get_weather", index=0, id="call_a")),
                 [("get_weather", OSLO)], id="elizaOS/eliza#9766"),
    pytest.param(parts(part(WHOLE, "get_weather", index=0, id="call_a"),
                       part(WHOLE, "get_weather", index=0, id="call_a")),
                 [("get_weather", OSLO)], id="elizaOS/eliza#9354"),
    pytest.param(parts(part("", "get_time", index=0, id="call_a")), [("get_time", {})], id="vercel/ai#6687"),
    pytest.param(parts(part(None, "get_time", index=0, id="call_a")), [("get_time", {})],
                 id="vllm-project/vllm#11392"),
    pytest.param(parts(part("", "get_weather", id="call_a"), part('{"city":'), part('"Oslo"}')),
                 [("get_weather", OSLO)], id="openai/openai-python#2806"),
    pytest.param(parts(part(WHOLE, "get_weather", id="call_a", index=None)), [("get_weather", OSLO)],
                 id="EricLBuehler/mistral.rs#1507"),
    pytest.param(parts(part(WHOLE, "get_weather", id="call_a"), part("{}", "get_time", id="call_b")),
                 [("get_weather", OSLO), ("get_time", {})], id="SamSaffron/term-llm#314"),
    pytest.param(parts(part(WHOLE, "get_weather", index=0, id="call_a"),
                       part('{"city":"Rome"}', "get_weather", index=0, id="call_b")),
                 [("get_weather", OSLO), ("get_weather", {"city": "Rome"})], id="vercel/ai#14277"),
    pytest.param(parts(part("", "get_weather", index=2, id="call_a"), part(WHOLE, index=2)),
                 [("get_weather", OSLO)], id="vercel/ai#18333"),
    pytest.param(parts(BEGUN, part('{"city":', index=0, id="call_other"), part('"Oslo"}', index=0, id="call_third")),
                 [("get_weather", OSLO)], id="poolsideai/pool#9"),
    pytest.param(parts(BEGUN, part('{"city":', index=0, id=""), part('"Oslo"}', index=0, id="")),
                 [("get_weather", OSLO)], id="symfony/ai#2220"),
    pytest.param(parts(BEGUN, part('{"city":', "", index=0, id=""), part('"Oslo"}', "", index=0, id="")),
                 [("get_weather", OSLO)], id="anomalyco/opencode#40969"),
    pytest.param(parts(BEGUN, part('{"city":', "get_weather", index=0, id="call_a"),
                       part('"Oslo"}', "get_weather", index=0, id="call_a")),
                 [("get_weather", OSLO)], id="SillyTavern/SillyTavern#5948"),
    pytest.param(parts(BEGUN, part('{"city":', index=0, id="call_a"), part('"Oslo"}', index=0, id="call_a")),
                 [("get_weather", OSLO)], id="JetBrains/koog#2052"),
    pytest.param(parts(part(OSLO, "get_weather", index=0, id="call_a")), [("get_weather", OSLO)],
                 id="ggml-org/llama.cpp#20198"),
    pytest.param(parts(part(WHOLE, "get_weather", index=0, id="call_a"), end=STOP), [("get_weather", OSLO)],
                 id="BerriAI/litellm#12862"),
    pytest.param(parts(part(WHOLE, "get_weather", index=0, id="call_a"), first=delta(content=None)),
                 [("get_weather", OSLO)], id="langchain-ai/langchainjs#11157"),
    pytest.param(parts([part(WHOLE, "get_weather", index=0, id="call_a"),
                        part("{}", "get_time", index=1, id="call_b")]),
                 [("get_weather", OSLO), ("get_time", {})], id="two calls in one event (vercel/ai#18333)"),
    pytest.param(parts(part("", "get_wea", index=0, id="call_a"), part("", "ther", index=0), part(WHOLE, index=0)),
                 [("get_weather", OSLO)], id="continuedev/continue#5849"),
    pytest.param(parts(part("", "get_", index=0, id="call_a"), part(None, "time", index=0)), [("get_time", {})],
                 id="continuedev/continue#5849 (without arguments)"),
    pytest.param(parts(part("", "get_", index=0, id="call_a"), part(WHOLE, "weather", index=0, id="call_a"),
                       part("", "get_time", index=1, id="call_b"), part("{}", index=1)),
                 [("get_weather", OSLO), ("get_time", {})], id="continuedev/continue#5849 (the first of two)"),
    pytest.param(parts(part("", "get_weather", index=0, id="call_a"), part("", "get_time", index=1, id="call_b"),
                       part('{"city":', index=0), part("{", index=1), part('"Oslo"}', index=0), part("}", index=1)),
                 [("get_weather", OSLO), ("get_time", {})], id="maximhq/bifrost#1829"),
    pytest.param(parts(part('{"city":', "get_weather", index=0, id="call_a"), part('"Os', index=1),
                       part('lo"}', index=2)),
                 [("get_weather", OSLO)], id="dirac-run/dirac#215"),
]  # fmt: skip


@pytest.mark.parametrize(("script", "expected"), STREAMS)
async def test_a_client_puts_the_calls_together_that_were_meant(
    script: Script, expected: list[tuple[str, Json]]
) -> None:
    async with in_front_of(script, "vllm") as field:
        answer = await field.ask(tools=[WEATHER, CLOCK], stream=True)

    found = heard(answer)
    assert found.tools == expected
    assert (found.finish, found.done, found.errors) == ({0: "tool_calls"}, True, [])
    assert len({one["id"] for one in found.calls.values()}) == len(expected)


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param(('{"city":"Os', 'lo"}'), id="elizaOS/eliza#9766"),
        pytest.param(('{"city": ', '"Oslo"}'), id="elizaOS/eliza#16973: encoded anew, with other spaces"),
    ],
)
async def test_a_call_repeated_at_the_end_is_cerebras_own_habit_too(pieces: tuple[str, str]) -> None:
    """Pieces, then the whole object again with id and name."""
    whole = part(WHOLE, "get_weather", index=0, id="call_a")
    script = parts(BEGUN, *(part(piece, index=0) for piece in pieces), whole)
    async with in_front_of(script, "cerebras", "gpt-oss-120b") as field:
        answer = await field.ask(tools=[WEATHER], stream=True)

    assert heard(answer).tools == [("get_weather", OSLO)]


async def test_a_call_written_as_text_by_a_model_known_for_it_becomes_one() -> None:
    """vllm-project/vllm#31871 is of this kind; at Fireworks it is some models' habit."""
    facts = {"messages": {"calls_in_content": True}}
    text = json.dumps({"name": "get_weather", "parameters": OSLO})
    async with in_front_of(stream(ROLE, *words(text[:20], text[20:]), STOP, DONE), overrides=facts) as field:
        answer = await field.ask(tools=[WEATHER], stream=True)

    found = heard(answer)
    assert (found.tools, found.finish, found.content) == ([("get_weather", OSLO)], {0: "tool_calls"}, "")
