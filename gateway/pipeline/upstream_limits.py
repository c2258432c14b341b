"""What a provider last told of the limits of one target; kept for whoever watches, never passed on to clients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from adapters.rate_limits import RateLimitReader

_EVERY_SECONDS: Final = 1.0
_ASSUMED_WINDOW_SECONDS: Final = 60.0
"""How long a figure is good whose reset is not told."""
_LONGEST_SECONDS: Final = 300.0
"""A figure older than this says little, however far off its reset."""


class UpstreamLimits:
    """The latest figures of one target."""

    __slots__ = ("_reader", "_seen", "due")

    def __init__(self, reader: RateLimitReader) -> None:
        self._reader = reader
        self._seen: dict[str, tuple[float, float]] = {}
        self.due = float("-inf")
        """When headers are worth reading again; refusals always are."""

    def note(self, headers: Mapping[str, str], now: float) -> None:
        """Take what the *headers* of an answer tell."""
        self.due = now + _EVERY_SECONDS
        told = self._reader.read(headers)
        for limit in told.limits if told is not None else ():
            if limit.remaining is not None:
                reset = _ASSUMED_WINDOW_SECONDS if limit.reset_seconds is None else limit.reset_seconds
                self._seen[limit.kind] = limit.remaining, now + min(reset, _LONGEST_SECONDS)

    def remaining(self, now: float) -> Iterator[tuple[str, float]]:
        """What is left, by kind of limit, as far as that is still worth something."""
        return ((kind, left) for kind, (left, until) in self._seen.items() if now < until)
