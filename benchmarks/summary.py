"""From the values of several rounds to one figure, and from figures to ratios."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.figures import BY_KEY, FIGURES, Best, Figure


@dataclass(slots=True)
class Record:
    """What was measured of one contestant: values by the figure's key, one a round."""

    name: str
    values: dict[str, list[float]] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    """What went wrong, in a sentence each."""
    doubtful: set[str] = field(default_factory=set)
    """Keys of figures that were taken while some answers were wrong."""

    def add(self, values: Mapping[str, float]) -> None:
        for key, value in values.items():
            self.values.setdefault(key, []).append(value)

    def remark(self, text: str) -> None:
        if text not in self.remarks:
            self.remarks.append(text)

    def figure(self, figure: Figure) -> float | None:
        """The value that stands for all rounds, or None where there is none."""
        if figure.difference_of is not None:
            whole, part = (self.figure(BY_KEY[key]) for key in figure.difference_of)
            return None if whole is None or part is None else whole - part
        return chosen(self.values.get(figure.key, ()), figure.best)


def chosen(values: Sequence[float], best: Best) -> float | None:
    """The one of *values* that counts."""
    if not values:
        return None
    if best is Best.MEDIAN:
        return statistics.median(values)
    return min(values) if best is Best.LEAST else max(values)


def ratio(value: float | None, to: float | None) -> float | None:
    """*value* in multiples of *to*, where that has a sense: differences of latencies can be below zero."""
    if value is None or to is None or to <= 0 or value < 0:
        return None
    return value / to


def spread(values: Sequence[float]) -> float | None:
    """How far the rounds lie apart, as a share of the least: the noise of the machine."""
    if len(values) < 2 or min(values) <= 0:
        return None
    return max(values) / min(values) - 1


def summarized(records: Sequence[Record], reference: Record | None) -> dict[str, dict[str, dict[str, float | None]]]:
    """Value, ratio to *reference* and spread, by contestant and figure."""
    made: dict[str, dict[str, dict[str, float | None]]] = {}
    for record in records:
        rows = made.setdefault(record.name, {})
        for figure in FIGURES:
            value = record.figure(figure)
            if value is None:
                continue
            base = reference.figure(figure) if reference is not None and figure.compares else None
            rows[figure.key] = {
                "value": value,
                "ratio": ratio(value, base),
                "spread": spread(record.values.get(figure.key, ())),
            }
    return made
