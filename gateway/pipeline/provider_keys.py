"""A provider's keys, used in turn; one that is refused rests for a while."""

from __future__ import annotations

from typing import Final

REST_SECONDS: Final = 900.0
"""How long a refused key is left alone (U22, U23): somebody has to make a new one, or pay."""


class ProviderKeys:
    """The turn of several keys of one provider, shared by all its targets. Keys are known by their position."""

    __slots__ = ("_next", "_resting_until")

    def __init__(self, count: int) -> None:
        self._resting_until = [float("-inf")] * count
        self._next = 0

    def take(self, now: float) -> int:
        """The next key that may be used; when all of them rest, the one that has rested longest."""
        resting = self._resting_until
        count = len(resting)
        for position in range(self._next, self._next + count):
            if resting[position % count] <= now:
                self._next = (position + 1) % count
                return position % count
        return min(range(count), key=resting.__getitem__)

    def refuse(self, position: int, now: float) -> None:
        """Let a key rest, because the provider refused it."""
        self._resting_until[position] = now + REST_SECONDS

    def any_left(self, now: float) -> bool:
        """Whether there is a key that does not rest."""
        return any(until <= now for until in self._resting_until)
