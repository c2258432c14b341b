"""Who is using a loaded model, in this process and in others, and since when nobody has."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from local_engine.lease import Lease


class Occupancy:
    """Counts the claims of one process, and sees by the lease whether others have any."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """*clock* gives seconds."""
        self.claims = 0
        self.freed = asyncio.Event()
        """Set when the last claim of this process is given back."""
        self._clock = clock
        self._used_at = clock()
        self._lease: Lease | None = None
        self._seen_ns = 0
        self._alone = False

    def share_by(self, path: Path) -> None:
        """Let other processes take part, through the file at *path*."""
        self._lease = Lease(path)
        self._seen_ns = self._lease.last_used_ns

    def claim(self) -> None:
        self.claims += 1

    def release(self) -> None:
        self.claims -= 1
        self.touch()
        if not self.claims:
            self.freed.set()

    def touch(self) -> None:
        """It is used at this moment."""
        self._used_at = self._clock()

    @property
    def last_used(self) -> float:
        """When anybody last did; now, for as long as this process does."""
        if self.claims:
            self.touch()
        elif self._lease is not None and (seen := self._lease.last_used_ns) != self._seen_ns:
            # It was within the last look's distance of now, which is near enough.
            self._seen_ns = seen
            self.touch()
        return self._used_at

    @property
    def idle_seconds(self) -> float:
        return self._clock() - self.last_used

    def empty(self) -> bool:
        """Whether nobody uses it, which stays so until `reopen`."""
        if self.claims:
            return False
        if not self._alone:
            self._alone = self._lease is None or self._lease.take_alone()
            if not self._alone:
                self.touch()  # another process is at it
        return self._alone

    def reopen(self) -> None:
        """Let it be used again."""
        if self._alone:
            self._alone = False
            if self._lease is not None:
                self._lease.give_back()
                self._seen_ns = self._lease.last_used_ns

    def close(self) -> None:
        if self._lease is not None:
            self._lease.close()
            self._lease = None
