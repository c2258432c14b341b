"""Costs are integers, rounded up once, and never below what is owed."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.pricing import cost_nusd, estimated_tokens, prompt_bytes
from adapters.types import LongPrice, Price, Usage
from tests.fakes.prepared import body_of

TOKENS = st.integers(0, 10**9)
PTOKEN = st.integers(0, 10**12)
PRICES = st.builds(Price, PTOKEN, PTOKEN, st.none() | PTOKEN)


@st.composite
def usages(draw: st.DrawFn) -> Usage:
    prompt = draw(TOKENS)
    return Usage(prompt, draw(TOKENS), cached_tokens=draw(st.integers(0, prompt)))


LONG = Price(
    2_000_000, 10_000_000, 200_000,
    (LongPrice(272_000, 4_000_000, 15_000_000, 400_000), LongPrice(500_000, 8_000_000, 15_000_000)),
)  # fmt: skip


@pytest.mark.parametrize(
    ("usage", "nusd"),
    [
        (Usage(272_000, 100, cached_tokens=2000), 540_000_000 + 400_000 + 1_000_000),
        (Usage(272_001, 100, cached_tokens=2000), 1_080_004_000 + 800_000 + 1_500_000),
        (Usage(500_001, 0, cached_tokens=1), 8 * 500_001 * 1000),
    ],
    ids=["at-the-limit", "past-it", "past-the-next-without-a-price-for-cached-tokens"],
)
def test_all_tokens_of_a_request_with_a_long_prompt_cost_more(usage: Usage, nusd: int) -> None:
    assert cost_nusd(LONG, usage) == nusd


def test_several_requests_are_not_one_with_a_long_prompt() -> None:
    once = Usage(200_000, 10)

    assert cost_nusd(LONG, once, once) == 2 * (400_000_000 + 100_000)
    assert cost_nusd(Price(1, 1), Usage(1, 0), Usage(1, 0)) == 1, "rounded up once for both"


@given(PRICES, usages())
def test_a_cost_is_rounded_up_once(price: Price, usage: Usage) -> None:
    cached = price.input_ptoken if price.cached_input_ptoken is None else price.cached_input_ptoken
    exact = Fraction(
        (usage.prompt_tokens - usage.cached_tokens) * price.input_ptoken
        + usage.cached_tokens * cached
        + usage.completion_tokens * price.output_ptoken,
        1000,
    )
    cost = cost_nusd(price, usage)
    assert isinstance(cost, int)
    assert exact <= cost < exact + 1


@pytest.mark.parametrize(
    ("price", "usage", "cost"),
    [
        (Price(150_000, 600_000), Usage(1000, 0), 150_000),
        (Price(150_000, 600_000, 75_000), Usage(1000, 100, cached_tokens=400), 180_000),
        (Price(1, 1), Usage(1, 0), 1),
        (Price(1, 1), Usage(0, 0), 0),
        (Price(0, 0), Usage(10, 10), 0),
        (None, Usage(10, 10), None),
    ],
)
def test_known_costs(price: Price | None, usage: Usage, cost: int | None) -> None:
    assert cost_nusd(price, usage) == cost


@given(st.integers(0, 10**9))
def test_an_estimate_is_never_below_a_third_of_the_bytes(count: int) -> None:
    tokens = estimated_tokens(count)
    assert Fraction(count * 115, 300) <= tokens < Fraction(count * 115, 300) + 1


@pytest.mark.parametrize("holder", [lambda url: {"url": url, "detail": "high"}, lambda url: url])
def test_an_image_counts_as_one_however_many_bytes_it_came_in(holder: Callable[[str], Any]) -> None:
    def size(image: str) -> int:
        parts = [{"type": "text", "text": "See."}, {"type": "image_url", "image_url": holder(image)}]
        return prompt_bytes(body_of(messages=[{"role": "user", "content": parts}, {"role": "assistant"}]))

    assert size("data:image/png;base64," + "A" * 9_000_000) == size("data:image/png;base64," + "A" * 9_000) < 5_000


@pytest.mark.parametrize(
    "content", ["A" * 9000, '"image_url"' * 900, ["image_url" * 900], [{"text": "image_url " * 900}]]
)
def test_text_counts_as_it_is(content: Any) -> None:
    assert prompt_bytes(body_of(messages=[{"role": "user", "content": content}], tools=[], n=2)) > 8000
