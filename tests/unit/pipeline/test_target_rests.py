"""The rests of one target: by key, by the provider's word or by a guess."""

from __future__ import annotations

import pytest

from adapters.errors import ProviderError
from adapters.types import FailureKind
from gateway.pipeline.provider_keys import REST_SECONDS, ProviderKeys
from gateway.pipeline.rests import Rests, TargetRests


def limited(wait: float | None) -> ProviderError:
    return ProviderError(FailureKind.RATE_LIMITED, "x", status=429, retry_after_seconds=wait)


def overloaded(wait: float) -> ProviderError:
    return ProviderError(FailureKind.OVERLOADED, "x", status=503, retry_after_seconds=wait)


@pytest.fixture
def most(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guesses are as long as they can be."""
    monkeypatch.setattr("gateway.pipeline.rests.random.random", lambda: 1.0)


def test_the_later_moment_counts() -> None:
    rests = TargetRests(Rests())
    rests.note(limited(20.0), 0, 100.0)
    rests.note(limited(3.0), 0, 101.0)
    assert rests.named_until(0) == 120.0
    rests.note(limited(30.0), 0, 101.0)
    assert rests.named_until(0) == 131.0


def test_everyone_knows_when_the_last_rest_ends() -> None:
    everyone = Rests()
    one, other = TargetRests(everyone), TargetRests(everyone)
    one.note(limited(20.0), 0, 100.0)
    other.note(limited(5.0), 0, 100.0)
    assert everyone.latest == 120.0


def test_a_rate_limit_is_the_keys_own_and_an_overload_all_keys() -> None:
    rests = TargetRests(Rests(), 3)
    rests.note(limited(20.0), 1, 100.0)
    assert [rests.until(key) > 100.0 for key in range(3)] == [False, True, False]
    rests.note(overloaded(5.0), 0, 100.0)
    assert [rests.until(key) for key in range(3)] == [105.0, 120.0, 105.0]
    assert rests.cause is FailureKind.OVERLOADED


@pytest.mark.usefixtures("most")
def test_guesses_double_while_they_fail_and_start_anew_after_quiet() -> None:
    rests, now, lengths = TargetRests(Rests()), 100.0, []
    for _ in range(5):
        rests.note(limited(None), 0, now)
        lengths.append(rests.until(0) - now)
        now = rests.until(0)
    assert lengths == [1.0, 2.0, 4.0, 8.0, 8.0]
    assert rests.named_until(0) < 0
    rests.note(limited(None), 0, now + 16.0)
    assert rests.until(0) == now + 17.0


@pytest.mark.usefixtures("most")
def test_what_was_under_way_when_a_guess_began_does_not_make_it_longer() -> None:
    rests = TargetRests(Rests())
    for _ in range(50):
        rests.note(limited(None), 0, 100.0)
    assert rests.until(0) == 101.0


def test_keys_that_rest_are_passed_over_in_their_turn() -> None:
    keys, rests = ProviderKeys(3), TargetRests(Rests(), 3)
    rests.note(limited(20.0), 1, 100.0)
    assert [keys.take(101.0, rests) for _ in range(4)] == [0, 2, 0, 2]
    assert [keys.take(120.0, rests) for _ in range(3)] == [0, 1, 2]


def test_where_all_keys_rest_the_first_to_come_back_is_taken_but_no_refused_one() -> None:
    keys, rests = ProviderKeys(3), TargetRests(Rests(), 3)
    keys.refuse(0, 100.0)
    rests.note(limited(20.0), 1, 100.0)
    rests.note(limited(10.0), 2, 100.0)
    assert keys.take(101.0, rests) == 2
    assert keys.usable(101.0) == [1, 2]
    assert keys.usable(100.0 + REST_SECONDS) == [0, 1, 2]
