"""The four clocks of an attempt (decision 27): connecting is the client's, the other three are kept here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from adapters.errors import ProviderError
from adapters.types import FailureKind
from gateway.deadlines import NEVER, Deadlines, Watch, nothing

# An enumeration's members are looked up by a function of its own; these are needed at every attempt.
_FIRST, _STALLED, _TOTAL = FailureKind.FIRST_CONTENT_TIMEOUT, FailureKind.STALLED, FailureKind.TOTAL_TIMEOUT
_SAYS = {
    FailureKind.FIRST_CONTENT_TIMEOUT: "sent no content in time",
    FailureKind.STALLED: "stopped sending",
    FailureKind.TOTAL_TIMEOUT: "took longer than the whole request may",
}


class AttemptClock(Watch):
    """First content, gap between contents, and the whole request; none of them is a socket's read timeout.

    While the attempt waits in a coroutine, running out of time cancels its task, and `expired` tells why; once a
    stream is being relayed, `on_over` is set to end that instead. Everything stops while we wait for our own client.

    Content that comes while the gap counts is noted by setting `content_at`, and nothing else: a deadline that passes
    is moved then by what was noted since, which is once in many events.
    """

    __slots__ = (
        "_deadlines", "_left", "_now", "_paused_at", "_stall_seconds", "_task", "_total", "content_at", "expired",
        "kind", "on_over",
    )  # fmt: skip

    def __init__(
        self,
        deadlines: Deadlines,
        now: Callable[[], float],
        task: asyncio.Task[None] | None,
        first_content: float,
        total: float,
    ) -> None:
        """*first_content* and *total* are points in time on the clock *now*; *task* is what runs the attempt."""
        self._deadlines = deadlines
        self._now = now
        self._total = total
        self._task = task
        self._paused_at = 0.0
        self._left = 0.0
        self._stall_seconds = 0.0
        self.content_at = 0.0
        """When the last content came."""
        self.expired = False
        if first_content < total:
            self.deadline, self.kind = first_content, _FIRST
        else:
            self.deadline, self.kind = total, _TOTAL
        self.on_over = self._cancel
        self.on_expire = self._due
        deadlines.add(self)

    def wait_again(self) -> None:
        """The attempt waits in a coroutine once more: running out of time cancels its task."""
        self.on_over = self._cancel

    def call_begins(self, now: float, seconds: float) -> None:
        """A further request of the attempt is sent: its first content has *seconds*, as far as the whole allows."""
        if self.kind is _STALLED or self._paused_at:
            return  # content is coming already, and its clock goes on
        if now + seconds < self._total:
            self.deadline, self.kind = max(self.deadline, now + seconds), _FIRST
        else:
            self.deadline, self.kind = self._total, _TOTAL

    def content_came(self, now: float, stall_seconds: float) -> None:
        """Content arrived, and from now on a gap of *stall_seconds* to the next ends the attempt."""
        self._stall_seconds, self.content_at = stall_seconds, now
        self.kind = _STALLED
        if not self._paused_at:
            self._count_from(now)

    def client_waits(self, paused: bool) -> None:
        """Stop the clocks while the client does not read, and give it the time back afterwards."""
        if paused and not self._paused_at:
            self._count_from(self.content_at)
            self._paused_at = self._now()
            self.deadline, self._left = NEVER, self.deadline - self._paused_at
        elif not paused and self._paused_at:
            now = self._now()
            if self.content_at >= self._paused_at:  # it was on its way when we stopped reading
                self._count_from(self.content_at)
                self._left = self.deadline - self.content_at
            self._total += now - self._paused_at
            self.deadline = now + self._left
            self._paused_at = 0.0

    def error(self, provider: str) -> ProviderError:
        """The failure that this clock stands for."""
        return ProviderError(self.kind, f"{provider} {_SAYS[self.kind]}.")

    def stop(self) -> None:
        """Stop watching, for good; may be called again."""
        self._deadlines.discard(self)
        self.on_expire = self.on_over = nothing
        self._task = None

    def _due(self) -> None:
        if self.kind is _STALLED:
            self._count_from(self.content_at)
            if self.deadline > self._now():
                return  # content has come since the deadline was set
            self.deadline = NEVER
        self.on_over()

    def _count_from(self, content_at: float) -> None:
        """Set the deadline by the content that came last, once any did."""
        if self.kind is _STALLED:
            self.deadline = content_at + self._stall_seconds
            if self.deadline >= self._total:
                self.deadline, self.kind = self._total, _TOTAL

    def _cancel(self) -> None:
        self.expired = True
        if self._task is not None:
            self._task.cancel()
