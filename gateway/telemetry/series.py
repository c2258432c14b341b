"""Counters, histograms and gauges as plain numbers, and their rendering as Prometheus text."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

Labels: TypeAlias = tuple[str, ...]
Numbers: TypeAlias = list[float]
"""A counter or gauge is one number; a histogram is the count of each bucket, then the sum of what was observed.

Whoever counts adds to them in place: a function for it would cost more than the sum.
"""

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Family:
    """What the series of one metric have in common."""

    name: str
    type: Literal["counter", "gauge", "histogram"]
    help: str
    labels: Labels = ()
    buckets: tuple[float, ...] = ()
    unit: float = 1.0
    """What one counted unit is worth in the unit of the name; money is counted in whole nano-USD."""
    combine: Callable[[Iterable[float]], float] = sum
    """How the gauges of several workers become one."""


class Table:
    """All series of one process. At most *ceiling* of them: what comes later is counted under ``other``."""

    def __init__(self, families: Iterable[Family], ceiling: int = 5_000) -> None:
        self.families = {family.name: family for family in families}
        self._series: dict[str, dict[Labels, Numbers]] = {name: {} for name in self.families}
        self._room = ceiling

    def series(self, name: str, *labels: str) -> Numbers:
        """The numbers of one series, made on first use; adding to them is all that counting takes."""
        of_family = self._series[name]
        if (found := of_family.get(labels)) is not None:
            return found
        if self._room <= 0:
            labels = ("other",) * len(labels)
            if (found := of_family.get(labels)) is not None:
                return found
        self._room -= 1
        buckets = self.families[name].buckets
        made: Numbers = [0] * (len(buckets) + 2) if buckets else [0]
        of_family[labels] = made
        return made

    def copy(self) -> dict[str, dict[Labels, Numbers]]:
        """The numbers of all series, as they are now."""
        return {
            name: {labels: list(numbers) for labels, numbers in of_family.items()}
            for name, of_family in self._series.items()
        }


def observe(numbers: Numbers, bounds: Sequence[float], values: Sequence[float]) -> None:
    """Count *values* into a histogram with these *bounds*."""
    numbers[-1] += sum(values)
    if len(values) < len(bounds):
        for value in values:
            numbers[bisect_left(bounds, value)] += 1
        return
    # Of many it is cheaper to look for the bounds among the values than for each value among the bounds.
    ordered = sorted(values)
    below = 0
    for place, bound in enumerate(bounds):
        up_to = bisect_right(ordered, bound, below)
        numbers[place] += up_to - below
        below = up_to
    numbers[len(bounds)] += len(ordered) - below


def add(total: dict[Labels, Numbers], more: dict[Labels, Numbers]) -> None:
    """Add the series of one process to *total*."""
    for labels, numbers in more.items():
        so_far = total.get(labels)
        total[labels] = list(numbers) if so_far is None else [a + b for a, b in zip(so_far, numbers, strict=True)]


def render(families: Iterable[Family], series: dict[str, dict[Labels, Numbers]]) -> bytes:
    """Prometheus text format 0.0.4; a family without series keeps its HELP and TYPE lines."""
    lines: list[str] = []
    for family in families:
        lines.append(f"# HELP {family.name} {_escape_help(family.help)}")
        lines.append(f"# TYPE {family.name} {family.type}")
        for labels, numbers in sorted(series.get(family.name, {}).items()):
            pairs = list(zip(family.labels, labels, strict=True))
            if family.type == "histogram":
                lines.extend(_histogram_lines(family, pairs, numbers))
            else:
                lines.append(f"{family.name}{_braces(pairs)} {_number(numbers[0] * family.unit)}")
    lines.append("")
    return "\n".join(lines).encode()


def _histogram_lines(family: Family, pairs: list[tuple[str, str]], numbers: Numbers) -> Iterator[str]:
    count = 0.0
    for bound, here in zip((*family.buckets, float("inf")), numbers[:-1], strict=True):
        count += here
        yield f"{family.name}_bucket{_braces([*pairs, ('le', _number(bound))])} {_number(count)}"
    yield f"{family.name}_sum{_braces(pairs)} {_number(numbers[-1])}"
    yield f"{family.name}_count{_braces(pairs)} {_number(count)}"


def _braces(pairs: list[tuple[str, str]]) -> str:
    return "{" + ",".join(f'{name}="{_escape_label(value)}"' for name, value in pairs) + "}" if pairs else ""


def _escape_label(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _escape_help(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    # Twelve digits hide what binary fractions add to 0.01 * 2**n and to sums of nano-USD.
    return str(int(value)) if value == int(value) else f"{value:.12g}"
