"""One coarse timer for the many limits that are nearly always set and nearly never reached."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable

NEVER = math.inf

_log = logging.getLogger(__name__)


class Watch:
    """A deadline that can be moved for the price of an assignment.

    *deadline* is on the clock of `Deadlines`, ``time.monotonic`` unless told otherwise; ``NEVER`` switches the watch
    off. *on_expire* is called once the deadline has passed, at most one tick late, and may set a new deadline.
    """

    __slots__ = ("deadline", "on_expire")

    def __init__(self, deadline: float, on_expire: Callable[[], None]) -> None:
        self.deadline = deadline
        self.on_expire = on_expire


def nothing() -> None:
    """What a watch does that is over: its owner's method would keep the two of them alive in a circle."""


class Deadlines:
    """Looks at all watches of an event loop every *tick_seconds*.

    A timer handle a request, moved at every event of a stream, would cost more than reading the event. A sweep
    over 2,000 watches takes about 0.1 ms.
    """

    def __init__(self, tick_seconds: float = 0.1, clock: Callable[[], float] = time.monotonic) -> None:
        self._tick_seconds = tick_seconds
        self._clock = clock
        self._watches: set[Watch] = set()
        self._handle: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def add(self, watch: Watch) -> None:
        """Start to look at *watch*, until it is discarded."""
        self._watches.add(watch)
        if self._handle is None:
            self._loop = self._loop or asyncio.get_running_loop()
            self._handle = self._loop.call_later(self._tick_seconds, self._sweep)

    def discard(self, watch: Watch) -> None:
        self._watches.discard(watch)

    def close(self) -> None:
        """Stop the timer and forget all watches."""
        self._watches.clear()
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def __len__(self) -> int:
        return len(self._watches)

    def _sweep(self) -> None:
        assert self._loop is not None
        now = self._clock()
        for watch in [w for w in self._watches if w.deadline <= now]:
            watch.deadline = NEVER
            try:
                watch.on_expire()
            except Exception:  # noqa: BLE001 - one broken callback must not stop the clock of everybody else
                _log.exception("a deadline's callback failed")
        # Without watches the timer rests, so that an idle gateway does not wake up ten times a second.
        self._handle = self._loop.call_later(self._tick_seconds, self._sweep) if self._watches else None
