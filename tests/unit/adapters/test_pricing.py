"""Costs are integers, rounded up once, and never below what is owed."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.pricing import cost_nusd, estimated_tokens
from adapters.types import Price, Usage

TOKENS = st.integers(0, 10**9)
PTOKEN = st.integers(0, 10**12)
PRICES = st.builds(Price, PTOKEN, PTOKEN, st.none() | PTOKEN)


@st.composite
def usages(draw: st.DrawFn) -> Usage:
    prompt = draw(TOKENS)
    return Usage(prompt, draw(TOKENS), cached_tokens=draw(st.integers(0, prompt)))


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
