"""Policies order, and do nothing else."""

from __future__ import annotations

import collections
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.registry import load_spec
from adapters.target import Target
from policies.base import _BUILT_IN, Candidate, PolicyError, get_policy, policy
from policies.priority import priority
from policies.weighted import weighted

SPEC = load_spec("openai_compatible")


def candidates(count: int, *weights: float) -> list[Candidate]:
    """*count* of them, or one for each of *weights*."""
    return [
        Candidate(Target(f"p/{number}", "p", str(number), SPEC, weight=weight), number)
        for number, weight in enumerate(weights or [1.0] * count)
    ]


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


@given(st.lists(st.sampled_from([0.0, 0.001, 0.5, 1.0, 95.0, 1e6]), min_size=1, max_size=8), st.integers(0, 1000))
def test_targets_without_a_weight_come_last_in_the_order_of_the_configuration(weights: list[float], seed: int) -> None:
    random.seed(seed)
    ordered = [(candidate.target.weight, candidate.position) for candidate in weighted(candidates(0, *weights))]
    last = [position for weight, position in ordered if not weight]
    assert [weight for weight, _ in ordered[len(ordered) - len(last) :]] == [0.0] * len(last)
    assert last == sorted(last)


def test_each_target_comes_first_as_often_as_its_weight_says() -> None:
    random.seed(7)
    given_order = candidates(0, 3.0, 1.0, 0.0, 4.0)
    firsts = collections.Counter(weighted(given_order)[0].position for _ in range(8000))
    seconds = collections.Counter(weighted(given_order)[1].position for _ in range(8000))
    assert [round(firsts[position] / 1000) for position in range(4)] == [3, 1, 0, 4]
    # Behind the third, which leads in one half of the draws, the first stands in three of four, and so on.
    assert seconds[0] / 8000 == pytest.approx(1 / 2 * 3 / 4 + 1 / 8 * 3 / 7, abs=0.03)


def test_an_unknown_policy_is_told_with_those_there_are() -> None:
    with pytest.raises(PolicyError, match=r"no policy is called 'cheapst'; there are: .*priority"):
        get_policy("cheapst")


def test_a_name_cannot_be_taken_twice() -> None:
    get_policy("priority")
    with pytest.raises(PolicyError, match="two policies are called 'priority'"):
        policy("priority")(lambda candidates: list(candidates))
    policy("priority")(priority)  # the same one again is no harm
