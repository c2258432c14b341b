"""How long a target is left alone after a failure."""

from __future__ import annotations

import pytest

from adapters.errors import ProviderError
from adapters.types import FailureKind
from policies.rest import LONGEST_GUESS_SECONDS, LONGEST_REST_SECONDS, Rest, rest_after

LIMITED, OVERLOADED = FailureKind.RATE_LIMITED, FailureKind.OVERLOADED


def after(kind: FailureKind, wait: float | None = None, status: int = 429, **more: float) -> Rest | None:
    failure = ProviderError(kind, "x", status=status, retry_after_seconds=wait)
    return rest_after(failure, guesses=int(more.get("guesses", 0)), jitter=more.get("jitter", 0.5))


@pytest.mark.parametrize("kind", [LIMITED, OVERLOADED])
def test_a_rest_is_as_long_as_the_provider_asks(kind: FailureKind) -> None:
    assert after(kind, 20.5) == Rest(20.5, named=True, all_keys=kind is OVERLOADED)


def test_no_rest_is_longer_than_the_cap() -> None:
    assert after(LIMITED, 86_400.0) == Rest(LONGEST_REST_SECONDS, named=True, all_keys=False)


def test_who_asks_for_no_time_gets_none() -> None:
    assert after(LIMITED, 0.0) is None


def test_a_rate_limit_without_a_time_is_guessed_twice_as_long_each_time() -> None:
    rests = [after(LIMITED, guesses=guesses) for guesses in range(6)]
    assert rests == [Rest(seconds, named=False, all_keys=False) for seconds in (0.5, 1.0, 2.0, 4.0, 4.0, 4.0)]
    longest = after(LIMITED, guesses=1000, jitter=0.999)
    assert longest is not None
    assert longest.seconds < LONGEST_GUESS_SECONDS


def test_an_overload_without_a_time_may_be_over_at_once() -> None:
    assert after(OVERLOADED, status=503) is None


def test_a_request_that_is_too_large_by_itself_says_nothing_of_others() -> None:
    assert after(LIMITED, 20.0, status=413) is None


@pytest.mark.parametrize("kind", sorted(set(FailureKind) - {LIMITED, OVERLOADED}))
def test_no_other_failure_lets_a_target_rest(kind: FailureKind) -> None:
    assert after(kind, 20.0) is None
