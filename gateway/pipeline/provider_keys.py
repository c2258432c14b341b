"""A provider's keys, used in turn; one that is refused, or at its limit for a model, rests for a while."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gateway.pipeline.rests import TargetRests

REST_SECONDS: Final = 900.0
"""How long a refused key is left alone (U22, U23): somebody has to make a new one, or pay."""


class ProviderKeys:
    """The turn of several keys of one provider, shared by all its targets. Keys are known by their position."""

    __slots__ = ("_next", "_resting_until", "count")

    def __init__(self, count: int) -> None:
        self.count = count
        self._resting_until = [float("-inf")] * count
        self._next = 0

    def take(self, now: float, rests: TargetRests | None = None) -> int:
        """The next key that may be used; when all of them rest, the one that may be used soonest.

        *rests* are those of the model that is asked for; None while no target rests.
        """
        refused = self._resting_until
        count = self.count
        for place in range(self._next, self._next + count):
            position = place % count
            if refused[position] <= now and (rests is None or rests.until(position) <= now):
                self._next = (position + 1) % count
                return position
        usable = self.usable(now)
        if rests is not None and usable:
            return min(usable, key=rests.until)
        return min(range(count), key=refused.__getitem__)

    def refuse(self, position: int, now: float) -> None:
        """Let a key rest, because the provider refused it."""
        self._resting_until[position] = now + REST_SECONDS

    def usable(self, now: float) -> Sequence[int]:
        """The keys that the provider has not refused of late."""
        return [position for position, until in enumerate(self._resting_until) if until <= now]
