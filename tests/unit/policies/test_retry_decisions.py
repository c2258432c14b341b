"""Retry decisions: never more than the counters allow, and nothing at all after content was passed on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.errors import ProviderError
from adapters.types import FailureKind
from policies.retry import (
    ELSEWHERE_FIRST,
    FINAL,
    KEY_REFUSED,
    LOUD,
    MAX_ATTEMPTS,
    MAX_BACKOFF_SECONDS,
    MAX_RETRY_AFTER_SECONDS,
    ONCE,
    Decision,
    Situation,
    Step,
    decide,
)


def situation(
    kind: FailureKind,
    *,
    tries: int = 1,
    total: int = 1,
    another: bool = True,
    left: float = 600.0,
    retry_after: float | None = None,
    client_retries: bool = False,
    another_key: bool = False,
    most: int | None = None,
    rests: float = 0.0,
) -> Situation:
    failure = ProviderError(kind, "x", retry_after_seconds=retry_after, tries=most)
    return Situation(failure, tries, total, another, another_key, left, client_retries, rests)


SITUATIONS = st.builds(
    situation,
    st.sampled_from(FailureKind),
    tries=st.integers(1, 12),
    total=st.integers(1, 12),
    another=st.booleans(),
    left=st.floats(-10, 1000),
    retry_after=st.none() | st.floats(0, 400),
    client_retries=st.booleans(),
    another_key=st.booleans(),
    most=st.none() | st.integers(1, 3),
    rests=st.just(0.0) | st.floats(0, 400),
)


@given(SITUATIONS, st.integers(1, 10), st.floats(0, 1, exclude_max=True))
def test_every_decision_keeps_to_the_limits(at: Situation, per_target: int, jitter: float) -> None:
    decision = decide(at, tries_per_target=per_target, jitter=jitter)
    kind = at.failure.kind
    if decision.step is not Step.STOP:
        assert kind not in FINAL
        assert at.tries_in_request < (MAX_ATTEMPTS // 2 if at.client_retries else MAX_ATTEMPTS)
        assert at.seconds_left >= 1.0
    if decision.step is Step.NEXT:
        assert at.another_target
        assert decision.wait_seconds == at.another_rests_seconds <= MAX_RETRY_AFTER_SECONDS
        assert not decision.wait_seconds or decision.wait_seconds + 1.0 <= at.seconds_left
    if decision.step is Step.SAME and at.another_key and kind in KEY_REFUSED | {FailureKind.RATE_LIMITED}:
        assert decision.wait_seconds == 0.0
    elif decision.step is Step.SAME:
        assert kind in LOUD | ONCE or at.failure.tries is not None
        assert at.tries_on_target < min(per_target, at.failure.tries or per_target)
        assert not (at.client_retries or kind in ONCE) or at.tries_on_target < 2 or at.failure.tries is not None
        assert 0 <= decision.wait_seconds <= max(MAX_RETRY_AFTER_SECONDS, MAX_BACKOFF_SECONDS + 0.5)
        assert decision.wait_seconds + 1.0 <= at.seconds_left


@given(SITUATIONS, st.integers(1, 10), st.floats(0, 1, exclude_max=True))
def test_another_target_is_never_left_untried_without_need(at: Situation, per_target: int, jitter: float) -> None:
    decision = decide(at, tries_per_target=per_target, jitter=jitter)
    needs_to_stop = (
        at.failure.kind in FINAL
        or at.seconds_left < 1.0
        or at.tries_in_request >= (MAX_ATTEMPTS // 2 if at.client_retries else MAX_ATTEMPTS)
    )
    assert (decision.step is Step.STOP) >= needs_to_stop
    if at.another_target and not at.another_rests_seconds and not needs_to_stop:
        assert decision.step is not Step.STOP


@given(SITUATIONS, st.integers(1, 10))
def test_a_broken_answer_is_never_asked_for_again(at: Situation, per_target: int) -> None:
    at.failure.kind = FailureKind.INTERRUPTED
    assert decide(at, tries_per_target=per_target, jitter=0.5) == Decision(Step.STOP)


@pytest.mark.parametrize("kind", sorted(set(FailureKind) - LOUD - FINAL - ONCE))
def test_a_silent_failure_never_meets_the_same_target_again(kind: FailureKind) -> None:
    assert decide(situation(kind), tries_per_target=3, jitter=0.5).step is Step.NEXT
    assert decide(situation(kind, another=False), tries_per_target=3, jitter=0.5).step is Step.STOP


@pytest.mark.parametrize("kind", sorted(ELSEWHERE_FIRST))
def test_another_target_is_quicker_than_waiting(kind: FailureKind) -> None:
    assert decide(situation(kind), tries_per_target=3, jitter=0.5) == Decision(Step.NEXT)
    assert decide(situation(kind, another=False), tries_per_target=3, jitter=0.5).step is Step.SAME


def test_waits_double_and_have_an_end() -> None:
    waits = [
        decide(situation(FailureKind.SERVER_ERROR, tries=tries), tries_per_target=99, jitter=0.999).wait_seconds
        for tries in range(1, 9)
    ]
    assert waits == sorted(waits)
    assert waits[0] == pytest.approx(0.25, abs=0.001)
    assert waits[1] == pytest.approx(0.5, abs=0.001)
    assert waits[-1] == pytest.approx(MAX_BACKOFF_SECONDS, abs=0.01)


def test_a_time_to_come_back_wins_over_the_backoff() -> None:
    at = situation(FailureKind.OVERLOADED, retry_after=3.0, another=False)
    assert decide(at, tries_per_target=3, jitter=0.0) == Decision(Step.SAME, 3.0)


def test_an_overloaded_server_that_names_a_time_leaves_it_to_another_target() -> None:
    assert decide(situation(FailureKind.OVERLOADED, retry_after=3.0), tries_per_target=3, jitter=0.0).step is Step.NEXT
    assert decide(situation(FailureKind.OVERLOADED), tries_per_target=3, jitter=0.0).step is Step.SAME


@pytest.mark.parametrize("kind", sorted(ELSEWHERE_FIRST))
def test_a_target_that_rests_is_no_quicker_than_this_one(kind: FailureKind) -> None:
    at = situation(kind, retry_after=1.0, rests=4.0)
    assert decide(at, tries_per_target=3, jitter=0.5) == Decision(Step.SAME, 1.0)


def test_a_target_that_rests_is_waited_for_when_this_one_may_not_be_tried_again() -> None:
    spent = situation(FailureKind.SERVER_ERROR, tries=3, rests=4.0)
    assert decide(spent, tries_per_target=3, jitter=0.5) == Decision(Step.NEXT, 4.0)


@pytest.mark.parametrize(
    ("rests", "left", "tries"),
    [(MAX_RETRY_AFTER_SECONDS + 0.1, 600.0, 3), (4.0, 4.5, 3), (4.0, 600.0, 1)],
    ids=["too-long", "past-the-deadline", "no-second-try-is-wanted"],
)
def test_a_target_that_rests_is_not_always_waited_for(rests: float, left: float, tries: int) -> None:
    at = situation(FailureKind.SERVER_ERROR, tries=3, rests=rests, left=left)
    assert decide(at, tries_per_target=tries, jitter=0.5).step is Step.STOP


def test_another_key_of_the_provider_has_a_limit_of_its_own() -> None:
    at = situation(FailureKind.RATE_LIMITED, tries=3, retry_after=20.0, another_key=True)
    assert decide(at, tries_per_target=1, jitter=0.5) == Decision(Step.SAME)


def test_a_request_that_is_too_large_by_itself_is_so_for_every_key() -> None:
    at = situation(FailureKind.RATE_LIMITED, another_key=True, most=1)
    assert decide(at, tries_per_target=3, jitter=0.5).step is Step.NEXT


def test_a_time_too_far_off_goes_onward() -> None:
    far = situation(FailureKind.OVERLOADED, retry_after=6.0)
    assert decide(far, tries_per_target=3, jitter=0.0) == Decision(Step.NEXT)
    alone = situation(FailureKind.RATE_LIMITED, retry_after=6.0, another=False)
    assert decide(alone, tries_per_target=3, jitter=0.0) == Decision(Step.STOP)


def test_a_rate_limit_without_a_time_waits_half_a_second_at_least() -> None:
    at = situation(FailureKind.RATE_LIMITED, another=False)
    assert decide(at, tries_per_target=3, jitter=0.0) == Decision(Step.SAME, 0.5)


def test_a_wait_that_does_not_fit_the_deadline_goes_onward() -> None:
    at = situation(FailureKind.OVERLOADED, retry_after=3.0, left=3.5)
    assert decide(at, tries_per_target=3, jitter=0.0) == Decision(Step.NEXT)


@pytest.mark.parametrize("kind", sorted(KEY_REFUSED))
def test_another_key_is_tried_at_once_and_before_another_target(kind: FailureKind) -> None:
    assert decide(situation(kind, another_key=True), tries_per_target=1, jitter=0.5) == Decision(Step.SAME)
    assert decide(situation(kind, another_key=True, left=0.5), tries_per_target=3, jitter=0.5).step is Step.STOP


def test_a_failure_may_say_that_trying_again_is_no_use_or_of_some() -> None:
    hopeless = situation(FailureKind.RATE_LIMITED, another=False, most=1)
    hopeful = situation(FailureKind.INVALID_OUTPUT, most=2)
    assert decide(hopeless, tries_per_target=3, jitter=0.5) == Decision(Step.STOP)
    assert decide(hopeful, tries_per_target=3, jitter=0.5).step is Step.SAME
