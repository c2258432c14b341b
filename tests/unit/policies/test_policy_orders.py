"""Policies order, and do nothing else."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.registry import load_spec
from adapters.target import Target
from policies.base import _BUILT_IN, Candidate, PolicyError, get_policy, policy
from policies.priority import priority

SPEC = load_spec("openai_compatible")


def candidates(count: int) -> list[Candidate]:
    return [Candidate(Target(f"p/{number}", "p", str(number), SPEC), number) for number in range(count)]


@pytest.mark.parametrize("name", _BUILT_IN)
@given(count=st.integers(0, 8), seed=st.integers(0, 1000))
def test_a_policy_returns_a_permutation(name: str, count: int, seed: int) -> None:
    given_order = candidates(count)
    random.Random(seed).shuffle(given_order)
    before = list(given_order)
    ordered = get_policy(name)(given_order)
    assert given_order == before
    assert sorted(map(id, ordered)) == sorted(map(id, before))


@given(st.permutations(range(6)))
def test_priority_keeps_the_order_of_the_configuration(order: list[int]) -> None:
    known = candidates(6)
    assert [candidate.position for candidate in priority([known[number] for number in order])] == list(range(6))


def test_an_unknown_policy_is_told_with_those_there_are() -> None:
    with pytest.raises(PolicyError, match=r"no policy is called 'cheapst'; there are: .*priority"):
        get_policy("cheapst")


def test_a_name_cannot_be_taken_twice() -> None:
    get_policy("priority")
    with pytest.raises(PolicyError, match="two policies are called 'priority'"):
        policy("priority")(lambda candidates: list(candidates))
    policy("priority")(priority)  # the same one again is no harm
