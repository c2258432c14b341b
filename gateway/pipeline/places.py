"""How many requests one attempt may have at a provider at a time."""

from __future__ import annotations

import asyncio
from collections import deque

from gateway.pipeline.backend import Concurrency


class Places:
    """The place that the attempt itself holds at the provider, and as many more as are free.

    Where there are fewer than requests, these take turns; with its own place the attempt always gets on.
    """

    __slots__ = ("_concurrency", "_more", "_own_free", "_waiting")

    def __init__(self, concurrency: Concurrency | None) -> None:
        """*concurrency* is None where the provider has no limit."""
        self._concurrency = concurrency
        self._own_free = True
        self._more = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def take(self) -> None:
        """Wait for a place; it must be given back."""
        if self._concurrency is None:
            return
        if self._own_free:
            self._own_free = False
        elif self._concurrency.take():
            self._more += 1
        else:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self.give_back()  # it came a moment too late
                raise

    def give_back(self) -> None:
        """Let the next one have it."""
        if self._concurrency is None:
            return
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        if self._more:
            self._more -= 1
            self._concurrency.give_back()
        else:
            self._own_free = True
