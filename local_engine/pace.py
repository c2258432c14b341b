"""The times that whoever watches a process goes by: pauses between its starts, and how long it may be silent."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RestartPace:
    """When a process that has failed is started again; the pauses double from failure to failure."""

    first_backoff_seconds: float = 0.5
    longest_backoff_seconds: float = 30.0
    healthy_after_seconds: float = 60.0
    """Having run this long makes the next failure count as the first."""
    failures_until_failed: int = 3

    def backoff_seconds(self, failures: int) -> float:
        """The pause after so many *failures* in a row."""
        return min(self.first_backoff_seconds * 2.0 ** min(failures - 1, 16), self.longest_backoff_seconds)


@dataclass(frozen=True, slots=True)
class Pace(RestartPace):
    """The times a supervisor of a local engine goes by."""

    health_interval_seconds: float = 5.0
    health_timeout_seconds: float = 10.0
    unanswered_until_hung: int = 2
    look_at_use_seconds: float = 1.0
    """How often to look whether a model can be unloaded."""
