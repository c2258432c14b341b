"""The figures that a comparison tells: what each is, which of several rounds counts, and what it should be."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Best(StrEnum):
    """Which round of several tells most about a program on a machine that does other things too."""

    LEAST = "least"
    """Costs: what else runs can only add to them."""
    MEDIAN = "median"
    """Differences of two measurements: noise goes either way."""
    MOST = "most"
    """What is reached."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a figure should be: at most (or at least) *value*, and *ratio* times that of nginx in the same run."""

    value: float | None = None
    ratio: float | None = None
    at_least: bool = False

    def told(self) -> str:
        sign = "≥" if self.at_least else "≤"
        parts = [f"{sign} {self.value:g}"] if self.value is not None else []
        parts += [f"{sign} {self.ratio:g}x"] if self.ratio is not None else []
        return ", ".join(parts)

    def met_by(self, value: float, ratio: float | None) -> bool:
        """Whether the ratio is as it should be, or the value where no ratio is wanted or known."""
        found, wanted = (ratio, self.ratio) if self.ratio is not None and ratio is not None else (value, self.value)
        if wanted is None:
            return True
        return found >= wanted if self.at_least else found <= wanted


@dataclass(frozen=True, slots=True)
class Figure:
    """One row of the table."""

    key: str
    label: str
    unit: str
    best: Best = Best.LEAST
    target: Target | None = None
    target_full: Target | None = None
    """For the gateway with everything on, where that differs."""
    compares: bool = True
    """A ratio to nginx says something."""
    difference_of: tuple[str, str] | None = None
    """Keys of two figures of which this is the difference; it is not measured itself."""


FIGURES: Final[tuple[Figure, ...]] = (
    Figure("request", "a request, 350 B", "CPU-µs", target=Target(50, 2.5), target_full=Target(75, 3.5)),
    Figure("request 25 kB", "a request, 25 kB", "CPU-µs", target=Target(75, 2.2)),
    Figure("request tools", "a request with tools", "CPU-µs"),
    Figure("request tls", "a request, TLS to the upstream", "CPU-µs"),
    Figure(
        "tls adds",
        "what TLS adds to a request",
        "CPU-µs",
        target=Target(ratio=1),
        difference_of=("request tls", "request"),
    ),
    Figure("request rate", "requests on the gateway's core", "1/s", Best.MOST, Target(20_000, 0.4, at_least=True)),
    Figure("event", "an SSE event, passed on", "CPU-µs", target=Target(26, 1.35)),
    Figure("event tls", "an SSE event, TLS to the upstream", "CPU-µs"),
    Figure("event calls", "an SSE event, tool call repaired", "CPU-µs", target=Target(30, 1.6)),
    Figure("event reasoning", "an SSE event, reasoning renamed", "CPU-µs", target=Target(30, 1.6)),
    Figure("alone p50", "added at 1 connection, p50", "µs", Best.MEDIAN, Target(100, 2)),
    Figure("alone p99", "added at 1 connection, p99", "µs", Best.LEAST, Target(200)),
    Figure("paced p50", "added at a fixed rate, p50", "µs", Best.MEDIAN),
    Figure("paced p99", "added at a fixed rate, p99", "µs", Best.LEAST),
    Figure(
        "streams 500", "500 streams: share of the full rate", "", Best.MOST, Target(0.98, at_least=True), compares=False
    ),
    Figure("first 500", "500 streams: first byte, p99", "ms", Best.LEAST, Target(20), compares=False),
    Figure(
        "streams 1000",
        "1,000 streams: share of the full rate",
        "",
        Best.MOST,
        Target(0.98, at_least=True),
        compares=False,
    ),
    Figure("first 1000", "1,000 streams: first byte, p99", "ms", compares=False),
    Figure(
        "streams 2000",
        "2,000 streams: share of the full rate",
        "",
        Best.MOST,
        Target(0.98, at_least=True),
        compares=False,
    ),
    Figure("first 2000", "2,000 streams: first byte, p99", "ms", compares=False),
    Figure("idle", "memory, idle", "MB", target=Target(60), compares=False),
    Figure("idle stream", "memory of an idle stream", "kB", target=Target(20), compares=False),
    Figure("start", "start to first answer", "s", target=Target(1), compares=False),
    Figure("start cpu", "time on a core until then", "CPU-s", compares=False),
)

BY_KEY: Final = {figure.key: figure for figure in FIGURES}
