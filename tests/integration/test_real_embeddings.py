"""A real embedding model behind the gateway: what means the same is near, and what does not is far."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.gateway import running_gateway
from tests.fakes.minilm import fetch_minilm

TEXTS = (
    "A dog plays with a ball in the garden.",
    "The puppy is chasing its toy on the lawn.",
    "The central bank raised interest rates again.",
    "Borrowing money has become more expensive.",
)

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


def nearness(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True)) / math.hypot(*one) / math.hypot(*other)


async def test_texts_that_mean_the_same_are_near_to_each_other(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "providers": {"minilm": {"type": "local", "model_path": str(fetch_minilm(tmp_path))}},
        "models": {"embed": {"targets": [{"provider": "minilm"}]}},
    }
    async with running_gateway(settings) as gateway:
        body = {"model": "embed", "input": list(TEXTS), "encoding_format": "float"}
        answer = await gateway.post("/v1/embeddings", body, timeout=120)

    assert answer.status == 200, answer.body
    dog, puppy, bank, money = (item["embedding"] for item in answer.json["data"])
    assert len(dog) == 384
    assert nearness(dog, puppy) > 0.4
    assert nearness(bank, money) > 0.4
    assert max(nearness(dog, bank), nearness(puppy, money), nearness(dog, money)) < 0.15
