"""A bounded queue in front of a fixed number of places, fair between keys."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque


class QueueFullError(Exception):
    """As many are waiting already as may."""


class FairQueue:
    """Hands out *places*; at most *limit* callers wait, each key's in their order, the keys in turn.

    With one key this is first come, first served. With several, a key that has a hundred requests waiting delays
    another key's next one by a single turn.
    """

    def __init__(self, places: int, limit: int) -> None:
        self._free = places
        self.limit = limit
        self._lines: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self.waiting = 0

    @property
    def free(self) -> int:
        return self._free

    async def take(self, key: str) -> None:
        """Return with a place, which must be given back exactly once; `QueueFullError` without waiting."""
        if self._free:
            self._free -= 1
            return
        if self.waiting >= self.limit:
            raise QueueFullError(f"{self.waiting} requests are waiting already")
        turn = asyncio.get_running_loop().create_future()
        self._lines.setdefault(key, deque()).append(turn)
        self.waiting += 1
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._leave(key, turn)
            else:  # the place came in the same moment as the cancellation
                self.give_back()
            raise

    def give_back(self) -> None:
        """Pass a place on to whoever is next."""
        if not self._lines:
            self._free += 1
            return
        key, line = next(iter(self._lines.items()))
        turn = line.popleft()
        self.waiting -= 1
        if line:
            self._lines.move_to_end(key)
        else:
            del self._lines[key]
        if turn.cancelled():  # its task has not run since, and will not find itself in a line
            self.give_back()
        else:
            turn.set_result(None)

    def _leave(self, key: str, turn: asyncio.Future[None]) -> None:
        line = self._lines.get(key)
        if line is None or turn not in line:
            return
        line.remove(turn)
        self.waiting -= 1
        if not line:
            del self._lines[key]
