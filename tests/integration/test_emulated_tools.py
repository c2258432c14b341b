"""openai-python, a gateway, and the real model, whose template has no tools: it calls them all the same."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import openai
import pytest
import pytest_asyncio
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam

from tests.fakes.gateway import KEY, RunningGateway, running_gateway

pytestmark = pytest.mark.asyncio(loop_scope="module")

SETTINGS = {
    "providers": {"engine": {"type": "local", "context": 2048, "slots": 2}},
    "models": {"small": {"targets": [{"provider": "engine"}], "timeouts": {"first_event": "300s"}}},
}
WEATHER: ChatCompletionToolParam = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "maxLength": 20}, "unit": {"enum": ["celsius", "fahrenheit"]}},
            "required": ["city", "unit"],
            "additionalProperties": False,
        },
    },
}
TIME: ChatCompletionToolParam = {
    "type": "function",
    "function": {
        "name": "get_time",
        "description": "The time of day",
        "parameters": {"type": "object", "properties": {}, "additionalProperties": False},
    },
}
ASKED: list[ChatCompletionMessageParam] = [{"role": "user", "content": "What is the weather in Paris in celsius?"}]
CALM: dict[str, Any] = {"model": "small", "temperature": 0, "max_tokens": 200}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(model_file: Path) -> AsyncIterator[RunningGateway]:
    async with running_gateway(SETTINGS) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(gateway: RunningGateway) -> AsyncIterator[openai.AsyncOpenAI]:
    address = f"http://127.0.0.1:{gateway.port}/v1"
    async with openai.AsyncOpenAI(base_url=address, api_key=KEY, max_retries=0, timeout=300.0) as made:
        yield made


def fits(arguments: str) -> bool:
    """Whether these are the arguments of `WEATHER`."""
    value = json.loads(arguments)
    return isinstance(value["city"], str) and value["unit"] in ("celsius", "fahrenheit") and len(value) == 2


@pytest.mark.parametrize("parallel", [True, False])
async def test_a_required_call_is_made(client: openai.AsyncOpenAI, parallel: bool) -> None:
    answer = await client.chat.completions.create(
        messages=ASKED, tools=[WEATHER, TIME], tool_choice="required", parallel_tool_calls=parallel, **CALM
    )

    (choice,) = answer.choices
    calls = choice.message.tool_calls
    assert choice.finish_reason == "tool_calls", answer
    assert calls
    assert parallel or len(calls) == 1
    assert len({call.id for call in calls}) == len(calls)
    for call in calls:
        assert call.type == "function"
        assert call.function.name == "get_time" or fits(call.function.arguments)
    assert answer.usage is not None
    assert answer.usage.completion_tokens > 0


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_named_call_is_made(client: openai.AsyncOpenAI, streamed: bool) -> None:
    options: dict[str, Any] = {"tool_choice": {"type": "function", "function": {"name": "get_weather"}}, **CALM}
    if streamed:
        async with client.chat.completions.stream(messages=ASKED, tools=[WEATHER, TIME], **options) as stream:
            answer = await stream.get_final_completion()
    else:
        answer = await client.chat.completions.create(messages=ASKED, tools=[WEATHER, TIME], **options)

    (call,) = answer.choices[0].message.tool_calls or []
    assert call.type == "function"
    assert call.function.name == "get_weather"
    assert fits(call.function.arguments)


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_model_that_may_choose_calls_or_speaks(client: openai.AsyncOpenAI, streamed: bool) -> None:
    if streamed:
        async with client.chat.completions.stream(messages=ASKED, tools=[WEATHER], **CALM) as stream:
            answer = await stream.get_final_completion()
    else:
        answer = await client.chat.completions.create(messages=ASKED, tools=[WEATHER], **CALM)

    (choice,) = answer.choices
    called = bool(choice.message.tool_calls)
    assert choice.finish_reason in (("tool_calls",) if called else ("stop", "length"))
    assert called != bool(choice.message.content)


async def test_what_came_of_a_call_is_understood(client: openai.AsyncOpenAI) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'}}
    history: list[Any] = [
        *ASKED,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "Sunny, 21 degrees."},
    ]
    answer = await client.chat.completions.create(messages=history, tools=[WEATHER], tool_choice="none", **CALM)

    assert answer.choices[0].message.content
    assert not answer.choices[0].message.tool_calls


async def test_several_choices_come_from_an_engine_with_fewer_slots(client: openai.AsyncOpenAI) -> None:
    stream = await client.chat.completions.create(
        messages=ASKED, n=3, stream=True, model="small", max_tokens=8, stream_options={"include_usage": True}
    )
    said: dict[int, str] = {}
    usage = None
    async for chunk in stream:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            said[choice.index] = said.get(choice.index, "") + (choice.delta.content or "")

    assert sorted(said) == [0, 1, 2]
    assert all(said.values())
    assert usage is not None
    assert usage.completion_tokens == 24
