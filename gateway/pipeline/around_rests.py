"""Going on while targets rest: who may be asked now, who next, and what a client is told when nobody may."""

from __future__ import annotations

from collections.abc import Sequence

from adapters.errors import ProviderError
from adapters.target import Target
from adapters.types import FailureKind
from gateway.data_plane.errors import retry_after
from gateway.errors import GatewayError, OverloadedError, RateLimitError
from gateway.pipeline.backend import Backend


def without_resting(ordered: Sequence[Backend], now: float) -> list[Backend]:
    """*ordered*, with those that rest at the end, the first to come back before the others.

    Where all rest, only those are left whose rest is a guess: nobody has asked for it. Raises `RateLimitError` or
    `OverloadedError` when there are none of these: a request would be refused, and might lengthen the rest.
    """
    awake = [backend for backend in ordered if not backend.rests_for(now)]
    if awake:
        resting = [backend for backend in ordered if backend not in awake]
        return awake + sorted(resting, key=lambda backend: backend.rests_for(now))
    guessed = [backend for backend in ordered if not backend.rests_for(now, by_name=True)]
    if not guessed:
        raise _refusal(ordered, now)
    return sorted(guessed, key=lambda backend: backend.rests_for(now))


def next_of(waiting: Sequence[Backend], now: float) -> Backend | None:
    """The first of *waiting* that does not rest, else the one that comes back first; None when there is none."""
    return min(waiting, key=lambda backend: backend.rests_for(now), default=None)


def resting_failures(backends: Sequence[Backend], now: float) -> list[tuple[Target, ProviderError]]:
    """For those of *backends* that rest, why they were not asked, as if they had refused."""
    failures = []
    for backend in backends:
        if seconds := backend.rests_for(now, by_name=True):
            message = f"{backend.target.provider} is {_at(backend.rests.cause)}; {_again(seconds)}."
            failure = ProviderError(backend.rests.cause, message, sent=False, retry_after_seconds=seconds)
            failures.append((backend.target, failure))
    return failures


def _refusal(resting: Sequence[Backend], now: float) -> GatewayError:
    """The first in the policy's order says why, the first to come back says when."""
    seconds = min(backend.rests_for(now, by_name=True) for backend in resting)
    cause = resting[0].rests.cause
    providers = " and ".join(dict.fromkeys(backend.target.provider for backend in resting))
    kind = RateLimitError if cause is FailureKind.RATE_LIMITED else OverloadedError
    are = "is" if len({backend.target.provider for backend in resting}) == 1 else "are"
    return kind(f"{providers} {are} {_at(cause)}; {_again(seconds)}.", headers=dict(retry_after(seconds)))


def _at(cause: FailureKind) -> str:
    return "at a rate limit" if cause is FailureKind.RATE_LIMITED else "overloaded"


def _again(seconds: float) -> str:
    whole = max(1, -(-round(seconds * 1000) // 1000))
    return f"try again in {whole} second{'s' if whole != 1 else ''}"
