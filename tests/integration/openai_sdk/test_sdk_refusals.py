"""What the openai-python client raises when it is refused, and that leaving frees the engine."""

from __future__ import annotations

import asyncio
from pathlib import Path

import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam

from local_engine import probe
from local_engine.state import Engine
from tests.fakes.gateway import RunningGateway, running_gateway
from tests.integration.openai_sdk.sdk import HELLO, MODEL, client_of, settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

SLOT_FREE_LIMIT_SECONDS = 20.0


async def test_a_wrong_key_is_an_authentication_error(gateway: RunningGateway) -> None:
    async with client_of(gateway, key="gw-wrong") as stranger:
        with pytest.raises(openai.AuthenticationError) as refusal:
            await stranger.chat.completions.create(model=MODEL, messages=HELLO)

    assert refusal.value.code == "invalid_api_key"


async def test_a_model_that_is_not_there_is_a_not_found_error(client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as refusal:
        await client.chat.completions.create(model="gpt-17", messages=HELLO)

    assert refusal.value.code == "model_not_found"


async def test_tools_are_a_bad_request_for_who_wants_no_emulation(client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as refusal:
        await client.chat.completions.create(
            model=MODEL,
            messages=HELLO,
            extra_headers={"x-gateway-unsupported": "reject"},
            tools=[{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}],
        )

    assert (refusal.value.code, refusal.value.param) == ("unsupported_parameter", "tools")


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_chat_that_does_not_fit_is_told_from_other_bad_requests(
    client: openai.AsyncOpenAI, streamed: bool
) -> None:
    with pytest.raises(openai.BadRequestError) as refusal:
        await client.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": "word " * 1500}], stream=streamed
        )

    assert refusal.value.code == "context_length_exceeded"


async def test_an_embedding_that_does_not_fit_is_told_too(client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as refusal:
        await client.embeddings.create(model=MODEL, input="word " * 1500)

    assert refusal.value.code == "context_length_exceeded"


async def keep_asking(engine: Engine) -> None:
    """Keep the engine's server awake: after a second in which nothing happens it looks for clients that have left."""
    while True:
        await probe.slots(engine.address)
        await asyncio.sleep(0.1)


@pytest.mark.parametrize("streamed", [False, True])
async def test_leaving_while_a_long_prompt_is_read_frees_the_slot(model_file: Path, streamed: bool) -> None:
    async with running_gateway(settings(slots=1, context=8192)) as gateway, client_of(gateway) as client:
        (engine,) = gateway.services.backends._engines.values()
        await engine.claim(60)
        engine.release()
        # Reading this takes the model a minute and more.
        long: list[ChatCompletionMessageParam] = [{"role": "user", "content": "word " * 7000}]
        leaving = asyncio.create_task(
            client.chat.completions.create(model=MODEL, messages=long, max_tokens=1, stream=streamed)
        )
        async with asyncio.timeout(10):
            while (await probe.slots(engine.address))[0].get("n_prompt_tokens", 0) < 200:  # it has read as much
                await asyncio.sleep(0.05)
        asking = asyncio.create_task(keep_asking(engine))

        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving

        async with asyncio.timeout(SLOT_FREE_LIMIT_SECONDS):
            await client.chat.completions.create(model=MODEL, messages=HELLO, max_tokens=1)
        asking.cancel()
        await asyncio.wait([asking])
