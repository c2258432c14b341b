"""Reports about answers that hold values of a kind that OpenAI's never have."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes.openai_answers import DONE, ROLE, STOP, completion, delta, payloads, stream
from tests.fakes.scripted_server import Script
from tests.fakes.scripted_server import answer as wire_answer
from tests.reports.field import heard, in_front_of

NO_NUMBERS = ["NaN", "-Infinity"]


def with_logprob(written: bytes, number: str) -> bytes:
    """*written* with a log probability that is no number in JSON beside its finish reason."""
    token = f'"logprobs": {{"content": [{{"token": "hi", "logprob": {number}, "bytes": [104], "top_logprobs": []}}]}}'
    return written.replace(b'"finish_reason"', token.encode() + b', "finish_reason"', 1)


@pytest.mark.parametrize("number", NO_NUMBERS)
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_probability_that_json_cannot_say_costs_nobody_the_answer(number: str, streamed: bool) -> None:
    """sgl-project/sglang#4097, madroidmaq/mlx-omni-server#56: a token that a grammar rules out has minus infinity."""
    script: Script = [wire_answer(with_logprob(json.dumps(completion("hi")).encode(), number))]
    if streamed:
        script = stream(ROLE, with_logprob(delta(content="hi"), number), STOP, DONE)
    async with in_front_of(script) as field:
        answer = await field.ask(stream=streamed, logprobs=True)

    if streamed:
        assert (heard(answer).content, heard(answer).errors) == ("hi", [])
    choices: list[Any] = [
        choice
        for one in (payloads(answer.body)[:-1] if streamed else [answer.json])
        for choice in one["choices"]
        if choice.get("logprobs")
    ]
    assert [choice["logprobs"]["content"][0]["logprob"] for choice in choices] == [-9999.0]


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_speed_that_json_cannot_say_does_so_neither(streamed: bool) -> None:
    whole = json.dumps(completion("hi", timings={"per_second": 1})).replace('"per_second": 1', '"per_second": Infinity')
    async with in_front_of([wire_answer(whole.encode())]) as field:
        answer = await field.ask(stream=streamed)

    assert answer.status == 200, answer.body
    assert b"Infinity" not in answer.body


async def test_a_vector_with_a_number_that_is_none_is_no_vector() -> None:
    script = [wire_answer(b'{"object": "list", "data": [{"index": 0, "embedding": [NaN, 1.0]}]}')]
    async with in_front_of(script) as field:
        answer = await field.gateway.post("/v1/embeddings", {"model": "m", "input": "hi"})

    assert answer.status == 502
