"""Reports about lists of inputs that are longer than a server embeds at once."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.fakes.openai_answers import refusal
from tests.fakes.scripted_server import RecordedRequest, Script
from tests.fakes.scripted_server import answer as wire_answer
from tests.reports.field import Json, in_front_of

TEXTS = [f"text {number}" for number in range(25)]


def server(most: int, told: str, status: int = 400) -> Callable[[RecordedRequest], Script]:
    """Embeds up to *most* texts at once, each as its own number."""

    def script(request: RecordedRequest) -> Script:
        texts = json.loads(request.body)["input"]
        if len(texts) > most:
            return [refusal(status, told.format(len(texts)))]
        data = [
            {"object": "embedding", "index": place, "embedding": [float(text.split()[1])]}
            for place, text in enumerate(texts)
        ]
        usage = {"prompt_tokens": 2 * len(texts), "total_tokens": 2 * len(texts)}
        return [wire_answer(json.dumps({"object": "list", "model": "bge", "data": data, "usage": usage}).encode())]

    return script


WORDS: list[Any] = [
    pytest.param("<400> InternalError.Algo.InvalidParameter: Value error, batch size is invalid, it should not be "
                 "larger than 10.: input.contents", 400, id="OpenSPG/KAG#669"),
    pytest.param("batch size {} > maximum allowed batch size 10", 413, id="huggingface/text-embeddings-inference#378"),
    pytest.param("input batch size {} > maximum allowed batch size 10", 400, id="n4ze3m/page-assist#371"),
    pytest.param("Invalid 'input': array too long. Expected an array with maximum length 10, but got an array with "
                 "length {} instead.", 422, id="OpenAI's own words"),
]  # fmt: skip


@pytest.mark.parametrize(("told", "status"), WORDS)
async def test_more_texts_than_fit_are_embedded_in_turn(told: str, status: int) -> None:
    body: Json = {"model": "m", "input": TEXTS, "encoding_format": "float"}
    async with in_front_of(server(10, told, status)) as field:
        for _ in range(2):
            answer = await field.gateway.post("/v1/embeddings", body)
            assert answer.status == 200, answer.body
        rows = await field.gateway.rows()

        assert [len(one["input"]) for one in field.sent] == [25, 10, 10, 5, 10, 10, 5]
    assert [(one["index"], one["embedding"]) for one in answer.json["data"]] == [(n, [float(n)]) for n in range(25)]
    assert answer.json["usage"] == {"prompt_tokens": 50, "total_tokens": 50}
    assert [row["prompt_tokens"] for row in rows] == [50, 50]
    assert answer.headers["x-gateway-adjusted"] == "input=split"


async def test_vectors_in_turn_come_in_the_encoding_that_was_asked_for() -> None:
    body: Json = {"model": "m", "input": TEXTS, "encoding_format": "base64"}
    async with in_front_of(server(10, "batch size {} > maximum allowed batch size 10")) as field:
        answer = await field.gateway.post("/v1/embeddings", body)

    assert [one["embedding"] for one in answer.json["data"]][:2] == ["AAAAAA==", "AACAPw=="]


KEPT: list[Any] = [
    pytest.param("This model's maximum context length is 8 tokens, however your input has 9.", id="a text too long"),
    pytest.param("input must have less than 20 tokens", id="tokens"),
    pytest.param("batch size 25 is not allowed", id="no number to go by"),
    pytest.param("The size of the inputs exceeds the limit of 5 MB.", id="megabytes"),
]


@pytest.mark.parametrize("told", KEPT)
async def test_other_refusals_of_texts_are_told_at_once(told: str) -> None:
    async with in_front_of([refusal(400, told)]) as field:
        answer = await field.gateway.post("/v1/embeddings", {"model": "m", "input": TEXTS})

        assert (answer.status, len(field.sent)) == (400, 1)
