"""Whatever a client puts where something else belongs is a 400 or the target's business, never an error of ours."""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any

import pytest

from tests.reports.field import CLOCK, USER, WEATHER, Json, call, in_front_of

SENSELESS: list[Any] = [
    None, True, 0, -1, 1.5, "", "x", "auto", "\u0000", [], {}, [[]], [None], ["x"], {"type": "x"}, {"type": ["x"]},
    {"name": 1}, {"function": 5}, {"type": "function", "function": {"name": 5}}, {"a": {"b": None}},
]  # fmt: skip
ROLES = ["system", "developer", "user", "assistant", "tool", "function"]
AROUND = [
    *("name", "tool_calls", "tool_call_id", "reasoning_content", "reasoning", "function_call", "refusal", "audio"),
    "cache_control",
]
KINDS = ["text", "image_url", "image", "input_text", "input_image", "thinking", "redacted_thinking", "refusal"]
IN_PARTS = ["type", "text", "image_url", "source", "detail", "thinking", "refusal", "cache_control"]
TOOLS: list[Json] = [
    WEATHER,
    CLOCK,
    {"name": "a", "input_schema": {"type": "object"}},
    {"type": "function", "name": "q"},
]
ELSEWHERE = [
    "stop",
    "response_format",
    "n",
    "logprobs",
    "metadata",
    "parallel_tool_calls",
    "functions",
    "function_call",
]
PROVIDERS = ["openai_compatible", "openai", "groq", "llama_cpp_server", "koboldcpp", "gpt4all", "shimmy", "mlc_llm"]
"""Of those that are stricter or lack more than others, each in its own way."""


def senseless(random: Random) -> Any:
    return copy.deepcopy(random.choice(SENSELESS))


def marred(random: Random, whole: Json, *more: str) -> Json:
    """*whole* with something senseless in the place of some of its members, or of *more*."""
    return {
        name: senseless(random) if name not in whole or random.random() < 0.3 else whole[name]
        for name in (*whole, *(name for name in more if random.random() < 0.15))
    }


def function_of(random: Random, given: Json) -> Json:
    inner = given.get("function")
    return {**given, "function": marred(random, inner, "strict")} if isinstance(inner, dict) else given


def message(random: Random) -> Json:
    parts = [marred(random, {"type": random.choice(KINDS)}, *IN_PARTS) for _ in range(random.randint(1, 3))]
    made: Json = {"role": random.choice(ROLES), "content": random.choice([parts, parts, "hello", senseless(random)])}
    if made["role"] == "assistant" and random.random() < 0.5:
        made["tool_calls"] = [function_of(random, marred(random, call(place))) for place in ("a", "b")]
    return made | {name: senseless(random) for name in AROUND if random.random() < 0.15}


def body(random: Random) -> Json:
    made: Json = {"messages": [USER, *(message(random) for _ in range(random.randint(1, 3)))]}
    if random.random() < 0.5:
        made["tools"] = [function_of(random, marred(random, random.choice(TOOLS), "x")) for _ in range(2)]
        named = {"type": random.choice(["function", "tool", "any", "allowed_tools"]), "name": "get_weather"}
        made["tool_choice"] = random.choice(["required", senseless(random), marred(random, named, "tools", "mode")])
    schema = {"type": "json_schema", "json_schema": marred(random, {"name": "a", "schema": {}}, "strict")}
    if random.random() < 0.2:
        made["response_format"] = schema
    return made | {name: senseless(random) for name in ELSEWHERE if random.random() < 0.05}


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_what_makes_no_sense_is_no_error_of_the_gateway(provider: str) -> None:
    random = Random(provider)
    async with in_front_of(provider=provider) as field:
        for _ in range(150):
            asked = body(random)
            answer = await field.ask(**asked)
            assert answer.status < 500 or answer.status == 502, json.dumps(asked)
