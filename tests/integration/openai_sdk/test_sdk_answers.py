"""The openai-python client, a gateway, and the real model: what people will do first has to work."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam
from pydantic import BaseModel

from tests.integration.openai_sdk.sdk import HELLO, MODEL

pytestmark = pytest.mark.asyncio(loop_scope="module")

DIMENSIONS = 576
# Biased against its end-of-turn token, the model talks until a limit stops it.
TALKATIVE = {"2": -100}


async def test_a_chat_is_answered_with_its_usage(client: openai.AsyncOpenAI) -> None:
    answer = await client.chat.completions.create(model=MODEL, messages=HELLO, temperature=0, max_tokens=20)

    assert answer.object == "chat.completion"
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].message.content
    assert answer.choices[0].finish_reason in ("stop", "length")
    assert answer.usage is not None
    assert answer.usage.prompt_tokens > 10
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert answer._request_id


async def test_a_stream_says_what_the_plain_answer_says_and_ends_with_its_usage(client: openai.AsyncOpenAI) -> None:
    plain = await client.chat.completions.create(model=MODEL, messages=HELLO, temperature=0, max_tokens=20)
    stream = await client.chat.completions.create(
        model=MODEL,
        messages=HELLO,
        temperature=0,
        max_tokens=20,
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = [chunk async for chunk in stream]

    *contents, last = chunks
    assert "".join(chunk.choices[0].delta.content or "" for chunk in contents) == plain.choices[0].message.content
    assert contents[0].choices[0].delta.role == "assistant"
    assert contents[-1].choices[0].finish_reason == plain.choices[0].finish_reason
    assert last.choices == []
    assert last.usage is not None
    assert plain.usage is not None
    assert last.usage.completion_tokens == plain.usage.completion_tokens
    assert not any((chunk.model_extra or {}).get("prompt_progress") for chunk in chunks)


@pytest.mark.parametrize("streamed", [False, True])
async def test_two_choices_come_with_the_usage_of_both(client: openai.AsyncOpenAI, streamed: bool) -> None:
    asked: dict[str, Any] = {"model": MODEL, "messages": HELLO, "n": 2, "max_tokens": 5, "logit_bias": TALKATIVE}
    if streamed:
        stream = await client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True})
        chunks = [chunk async for chunk in stream]
        indexes = {choice.index for chunk in chunks for choice in chunk.choices}
        usages = [chunk.usage for chunk in chunks if chunk.usage]
    else:
        answer = await client.chat.completions.create(**asked)
        indexes = {choice.index for choice in answer.choices}
        usages = [answer.usage]

    assert indexes == {0, 1}
    assert [usage.completion_tokens for usage in usages if usage] == [10]


class Weather(BaseModel):
    sky: Literal["blue", "grey"]
    windy: bool


async def test_an_answer_fits_the_schema_it_was_given(client: openai.AsyncOpenAI) -> None:
    messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": "How is the weather? Answer in JSON."}]
    parsed = await client.chat.completions.parse(
        model=MODEL, messages=messages, response_format=Weather, temperature=0, max_tokens=200
    )

    assert isinstance(parsed.choices[0].message.parsed, Weather)


async def test_an_answer_is_json_when_that_is_asked_for(client: openai.AsyncOpenAI) -> None:
    answer = await client.chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": 'Repeat: {"sea": "blue"}'}],
        response_format={"type": "json_object"},
        temperature=0,
        max_tokens=200,
    )

    assert (answer.choices[0].message.content or "").startswith("{")


@pytest.mark.parametrize(("alternatives", "given"), [(3, 3), (None, 0)])
async def test_every_token_comes_with_its_log_probability(
    client: openai.AsyncOpenAI, alternatives: int | None, given: int
) -> None:
    answer = await client.chat.completions.create(
        model=MODEL,
        messages=HELLO,
        max_tokens=4,
        temperature=0,
        logprobs=True,
        top_logprobs=alternatives,
        logit_bias={"2": -100},
    )

    logprobs = answer.choices[0].logprobs
    assert logprobs is not None
    assert logprobs.content is not None
    assert len(logprobs.content) == 4
    assert all(token.logprob <= 0 and len(token.top_logprobs) == given for token in logprobs.content)
    assert "".join(token.token for token in logprobs.content) == answer.choices[0].message.content


async def test_the_same_seed_gives_the_same_answer_and_another_seed_another(client: openai.AsyncOpenAI) -> None:
    async def told(seed: int) -> str | None:
        answer = await client.chat.completions.create(
            model=MODEL, messages=HELLO, seed=seed, temperature=1.5, max_tokens=24, logit_bias={"2": -100}
        )
        return answer.choices[0].message.content

    first, again, other = await told(7), await told(7), await told(8)
    assert first == again
    assert first != other


async def test_an_answer_ends_before_a_stop_sequence(client: openai.AsyncOpenAI) -> None:
    whole = await client.completions.create(model=MODEL, prompt="The sea is", temperature=0, max_tokens=20)
    word = whole.choices[0].text.split()[4]

    cut = await client.completions.create(model=MODEL, prompt="The sea is", temperature=0, max_tokens=20, stop=word)

    assert cut.choices[0].finish_reason == "stop"
    assert cut.choices[0].text == whole.choices[0].text[: whole.choices[0].text.index(word)]


@pytest.mark.parametrize("limit", ["max_tokens", "max_completion_tokens"])
async def test_an_answer_is_no_longer_than_its_limit(client: openai.AsyncOpenAI, limit: str) -> None:
    options: dict[str, Any] = {limit: 3, "logit_bias": TALKATIVE}
    answer = await client.chat.completions.create(model=MODEL, messages=HELLO, **options)

    assert answer.choices[0].finish_reason == "length"
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 3


@pytest.mark.parametrize("prompt", ["The sea is", ["The sea is"], [504, 4370, 314]], ids=["text", "list", "tokens"])
async def test_a_text_is_continued(client: openai.AsyncOpenAI, prompt: Any) -> None:
    stream = await client.completions.create(model=MODEL, prompt=prompt, temperature=0, max_tokens=8, stream=True)
    streamed = "".join([chunk.choices[0].text async for chunk in stream])
    plain = await client.completions.create(model=MODEL, prompt=prompt, temperature=0, max_tokens=8)

    assert plain.object == "text_completion"
    assert plain.choices[0].text == streamed != ""


def alike(one: Sequence[float], other: Sequence[float]) -> bool:
    return all(math.isclose(a, b, abs_tol=1e-3) for a, b in zip(one, other, strict=True))


async def test_embeddings_are_the_same_in_both_encodings(client: openai.AsyncOpenAI) -> None:
    # Left to itself, the client asks for base64.
    packed = await client.embeddings.create(model=MODEL, input="the sea")
    floats = await client.embeddings.create(model=MODEL, input="the sea", encoding_format="float")

    assert len(packed.data[0].embedding) == len(floats.data[0].embedding) == DIMENSIONS
    assert alike(packed.data[0].embedding, floats.data[0].embedding)
    assert floats.usage.prompt_tokens > 0


@pytest.mark.parametrize(("many", "count"), [(["the sea", "a ship"], 2), ([1, 2, 3], 1), ([[1, 2], [3]], 2)])
async def test_embeddings_are_made_of_texts_and_of_tokens(client: openai.AsyncOpenAI, many: Any, count: int) -> None:
    answer = await client.embeddings.create(model=MODEL, input=many)

    assert [item.index for item in answer.data] == list(range(count))
    assert all(len(item.embedding) == DIMENSIONS for item in answer.data)


async def test_models_are_listed_and_found(client: openai.AsyncOpenAI) -> None:
    listed = [model.id async for model in client.models.list()]

    assert "small" in listed
    assert (await client.models.retrieve("small")).id == "small"
