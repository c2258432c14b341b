"""Which targets rest, and until when: those that are at their limit are not asked before it has passed."""

from __future__ import annotations

import random
from typing import Final

from adapters.errors import ProviderError
from adapters.types import FailureKind
from policies.rest import LONGEST_GUESS_SECONDS, rest_after

_NEVER: Final = float("-inf")


class Rests:
    """When the last of all rests ends, on the clock of `Services`: all that a request looks at while nobody rests."""

    __slots__ = ("latest",)

    def __init__(self) -> None:
        self.latest = _NEVER


class TargetRests:
    """The rests of one model at one provider, for each of the provider's keys by its position.

    Limits are per model and key (reliability 4): another model of the provider, or another key, may have all of its
    own left. Targets of several models that are the same to the provider share one of these.
    """

    __slots__ = ("_guessed", "_guesses", "_named", "cause", "everyone")

    def __init__(self, everyone: Rests, keys: int = 1) -> None:
        """*everyone* is told of each rest."""
        self.everyone = everyone
        self._named = [_NEVER] * keys
        self._guessed = [_NEVER] * keys
        self._guesses = [0] * keys
        self.cause = FailureKind.RATE_LIMITED
        """What the last rest that the provider asked for was about."""

    def note(self, failure: ProviderError, key: int, now: float) -> None:
        """Let *key*, or all keys, rest if *failure* says that a limit is reached."""
        before = self._guessed[key]
        # A guess that was followed by quiet was a good one; else the next may be twice as long.
        guesses = self._guesses[key] if now < before + 2 * LONGEST_GUESS_SECONDS else 0
        rest = rest_after(failure, guesses=guesses, jitter=random.random())  # noqa: S311 - spreads load
        if rest is None:
            return
        until = now + rest.seconds
        if rest.named:
            self.cause = failure.kind
            for each in range(len(self._named)) if rest.all_keys else (key,):
                self._named[each] = max(self._named[each], until)
        elif now >= before:
            self._guesses[key] = guesses + 1
            self._guessed[key] = until
        # Else the request was under way when the rest began, and tells nothing new.
        self.everyone.latest = max(self.everyone.latest, until)

    def until(self, key: int) -> float:
        """When *key* may be used again; in the past where it does not rest."""
        return max(self._named[key], self._guessed[key])

    def named_until(self, key: int) -> float:
        """The same, by the provider's own word alone."""
        return self._named[key]
