"""A client of OpenAI's own reads what simulated providers write, and notices what breaks, over a real socket."""

from __future__ import annotations

import asyncio
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam

from adapters.registry import load_spec
from adapters.types import Operation
from tests.fakes.simulated import Simulated, simulated
from tests.unit.adapters.simulator.asking import CHATS

SAY: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Say exactly: the sea is calm"}]
LISTERS = [name for name in CHATS if (found := load_spec(name).endpoints.get("models")) and found.available]
EMBEDDERS = [
    name for name in CHATS if (found := load_spec(name).endpoints.get(Operation.EMBEDDINGS)) and found.available
]


def client_of(sim: Simulated, **options: Any) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=sim.base_url, api_key=sim.key, max_retries=0, timeout=10.0, **options)


@pytest.mark.parametrize("provider", CHATS)
async def test_a_chat_reads_the_same_whole_and_streamed(provider: str) -> None:
    async with simulated(provider) as sim, client_of(sim) as client:
        whole = await client.chat.completions.create(model=sim.model, messages=SAY)
        stream = await client.chat.completions.create(model=sim.model, messages=SAY, stream=True)
        chunks = [chunk async for chunk in stream]

    assert whole.choices[0].message.content == "the sea is calm"
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "the sea is calm"
    assert whole.usage is not None
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens
    assert [body["messages"] for body in sim.requests] == [SAY, SAY]
    assert sim.refusals == []


@pytest.mark.parametrize("provider", EMBEDDERS)
async def test_embeddings_are_read(provider: str) -> None:
    async with simulated(provider, models=("embedder",)) as sim, client_of(sim) as client:
        answer = await client.embeddings.create(model="embedder", input=["the sea", "the sky"])

    assert [len(row.embedding) for row in answer.data] == [32, 32]
    assert answer.data[0].embedding != answer.data[1].embedding


@pytest.mark.parametrize("provider", LISTERS)
async def test_the_models_are_listed(provider: str) -> None:
    async with simulated(provider, models=("my-own",)) as sim, client_of(sim) as client:
        names = [model.id async for model in client.models.list()]

    assert "my-own" in names
    assert set(names) - {"my-own"} == {model.id for model in load_spec(provider).models if model.id in names}


async def test_a_wrong_key_is_an_authentication_error() -> None:
    async with simulated("groq") as sim, client_of(sim) as client:
        with pytest.raises(openai.AuthenticationError):
            await client.with_options(api_key="gsk_wrong").chat.completions.create(model=sim.model, messages=SAY)


async def test_a_connection_that_breaks_is_noticed() -> None:
    async with simulated("groq") as sim, client_of(sim) as client:
        with pytest.raises(openai.APIConnectionError):
            await client.chat.completions.create(model="simulate-cut", messages=SAY)
        stream = await client.chat.completions.create(model="simulate-cut-3", messages=SAY, stream=True)
        for _ in range(3):
            assert (await anext(stream)).choices
        with pytest.raises(openai.APIConnectionError):
            await anext(stream)


async def test_an_answer_that_never_comes_is_waited_for_in_vain() -> None:
    async with simulated("groq") as sim, client_of(sim) as client:
        with pytest.raises(openai.APITimeoutError):
            await client.with_options(timeout=0.1).chat.completions.create(model="simulate-hang", messages=SAY)

    assert [body["model"] for body in sim.requests] == ["simulate-hang"]


async def test_waits_pass_on_the_wire() -> None:
    async with simulated("groq", first_token_seconds=0.05) as sim, client_of(sim) as client:
        begun = asyncio.get_running_loop().time()
        await client.chat.completions.create(model=sim.model, messages=SAY)

        assert asyncio.get_running_loop().time() - begun >= 0.05
