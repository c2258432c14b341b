"""How long a target is left alone after a failure: as long as its provider asks, or some seconds where it does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from adapters.errors import ProviderError
from adapters.types import FailureKind

LONGEST_REST_SECONDS: Final = 300.0
"""Whatever a provider asks for (U17): further off than that, its word is worth a request to see."""
LONGEST_GUESS_SECONDS: Final = 8.0

_TOO_LARGE: Final = 413


@dataclass(frozen=True, slots=True)
class Rest:
    """A time in which a target is not asked while others can answer."""

    seconds: float
    named: bool
    """The provider has named the time, so that even a request without another target is not sent before it is over."""
    all_keys: bool
    """It is the server that is at its limit, whichever of our keys is used."""


def rest_after(failure: ProviderError, *, guesses: int, jitter: float) -> Rest | None:
    """The rest after *failure*; None where it says nothing of the requests to come.

    *guesses* is how many rests in a row had to be guessed before; *jitter* is a random number in [0, 1).
    """
    kind = failure.kind
    if kind not in (FailureKind.RATE_LIMITED, FailureKind.OVERLOADED) or failure.status == _TOO_LARGE:
        # Of a request that is too large for what is left of a minute, others know nothing (Groq's 413).
        return None
    asked = failure.retry_after_seconds
    overloaded = kind is FailureKind.OVERLOADED
    if asked is not None:
        return Rest(min(asked, LONGEST_REST_SECONDS), named=True, all_keys=overloaded) if asked > 0 else None
    if overloaded:
        return None
    # U18: full jitter over 1, 2, 4, then 8 seconds.
    return Rest(jitter * min(LONGEST_GUESS_SECONDS, 2.0**guesses), named=False, all_keys=False)
