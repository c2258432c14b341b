"""What to do after a failed attempt: the same target again, the next one, or give up."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from adapters.errors import ProviderError
from adapters.types import FailureKind


class Step(StrEnum):
    """The next move of the attempt loop."""

    SAME = "same"
    NEXT = "next"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class Decision:
    """A step, and how long to wait before it."""

    step: Step
    wait_seconds: float = 0.0


# Loud failures come back quickly and often pass: worth another try on the same target (decision 26).
LOUD: Final = frozenset(
    {
        FailureKind.CONNECT,
        FailureKind.RESET,
        FailureKind.RATE_LIMITED,
        FailureKind.OVERLOADED,
        FailureKind.SERVER_ERROR,
        FailureKind.MALFORMED,
        FailureKind.EMPTY,
    }
)
# The request is at fault or was answered for good: no other target would make it right, or may be asked.
FINAL: Final = frozenset(
    {FailureKind.BAD_REQUEST, FailureKind.CONTENT_FILTER, FailureKind.INTERRUPTED, FailureKind.SHUTTING_DOWN}
)
# Said once more, since nothing tells whether the first one was worked on (U20).
ONCE: Final = frozenset({FailureKind.TIMEOUT_STATUS})

# One of the gateway's own keys was refused, which another key may not be (U22, U23).
KEY_REFUSED: Final = frozenset({FailureKind.AUTH, FailureKind.PAYMENT})

# Another target answers at once where this one would only after a while: the same one is a last resort (U1, U17).
ELSEWHERE_FIRST: Final = frozenset({FailureKind.RATE_LIMITED, FailureKind.CONNECT})

MAX_ATTEMPTS: Final = 9
MAX_BACKOFF_SECONDS: Final = 8.0
BASE_BACKOFF_SECONDS: Final = 0.25
MAX_RETRY_AFTER_SECONDS: Final = 5.0
NO_OTHER_TARGET: Final = Decision(Step.STOP)


@dataclass(frozen=True, slots=True)
class Situation:
    """What is known when an attempt has failed."""

    failure: ProviderError
    tries_on_target: int
    """How often this target was tried in this request, the failed attempt included."""
    tries_in_request: int
    another_target: bool
    another_key: bool
    """The provider has a key that it did not refuse just now, and that is not at its limit."""
    seconds_left: float
    """Until the request's deadline."""
    client_retries: bool
    """The client is itself retrying (its SDK says so): half as many attempts are made for it (C18)."""
    another_rests_seconds: float = 0.0
    """How long the other target has to be left alone; until then this one is as good, if it may be tried again."""


def decide(situation: Situation, *, tries_per_target: int, jitter: float) -> Decision:
    """The next step after a failure; *jitter* is a random number in [0, 1).

    Silent failures (timeouts) go straight to the next target, loud ones are tried again where they happened. A rate
    limit, or a time that an overloaded server asks for, is only waited for, and a server that is not there only tried
    again, when no other target can take over.
    """
    kind = situation.failure.kind
    onward = _onward(situation, tries_per_target)
    most = MAX_ATTEMPTS // 2 if situation.client_retries else MAX_ATTEMPTS
    if kind in FINAL or situation.tries_in_request >= most or situation.seconds_left < 1.0:
        return NO_OTHER_TARGET
    if situation.another_key and (kind in KEY_REFUSED or (kind is FailureKind.RATE_LIMITED and _may_pass(situation))):
        return Decision(Step.SAME)
    if situation.failure.tries is not None:
        allowed = min(tries_per_target, situation.failure.tries)
    elif kind in LOUD or kind in ONCE:
        allowed = min(tries_per_target, 2) if situation.client_retries or kind in ONCE else tries_per_target
    else:
        allowed = 1
    if situation.tries_on_target >= allowed:
        return onward
    wait = situation.failure.retry_after_seconds
    elsewhere_first = kind in ELSEWHERE_FIRST or (kind is FailureKind.OVERLOADED and wait)
    if elsewhere_first and situation.another_target and not situation.another_rests_seconds:
        return onward
    if wait is None:
        wait = jitter * min(MAX_BACKOFF_SECONDS, BASE_BACKOFF_SECONDS * 2 ** (situation.tries_on_target - 1))
        if kind is FailureKind.RATE_LIMITED:
            wait += 0.5  # U18: without a hint, half a second at the least
    elif wait > MAX_RETRY_AFTER_SECONDS:
        return onward
    if wait + 1.0 > situation.seconds_left:
        return onward
    return Decision(Step.SAME, wait)


def _onward(situation: Situation, tries_per_target: int) -> Decision:
    """On to the other target, if there is one and it need not be waited for longer than a failed one would be."""
    wait = situation.another_rests_seconds
    if not situation.another_target:
        return NO_OTHER_TARGET
    if wait and (tries_per_target == 1 or wait > MAX_RETRY_AFTER_SECONDS or wait + 1.0 > situation.seconds_left):
        return NO_OTHER_TARGET
    return Decision(Step.NEXT, wait)


def _may_pass(situation: Situation) -> bool:
    """Whether another request of the same kind could go through: one that is too large by itself never does."""
    return situation.failure.tries is None
