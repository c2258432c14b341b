"""What a comparison gave, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.figures import FIGURES, Figure
from benchmarks.summary import Record, ratio, summarized

_MISSING = "–"


def table(records: Sequence[Record], reference: str, *, ours: str, full: str) -> str:
    """A Markdown table: a row a figure, a column a contestant, behind a figure its ratio to *reference*.

    The last two columns say what the target of *ours* is and whether it is met; *full* names the column with targets of
    its own.
    """
    by_name = {record.name: record for record in records}
    base = by_name.get(reference)
    head = ["figure", "unit", *(record.name for record in records), "target", "met"]
    rows = [head, ["---", "---", *("--:" for _ in records), "---", "---"]]
    for figure in FIGURES:
        values = [record.figure(figure) for record in records]
        if all(value is None for value in values):
            continue
        cells = [_cell(record, figure, base) for record in records]
        rows.append([figure.label, figure.unit, *cells, *_judged(figure, by_name, base, ours, full)])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def document(records: Sequence[Record], reference: str, about: dict[str, Any]) -> dict[str, Any]:
    """Everything that was measured, for machines: *about* the run, the summary, and each round."""
    base = next((record for record in records if record.name == reference), None)
    return {
        "about": about,
        "reference": reference if base is not None else None,
        "figures": {figure.key: {"label": figure.label, "unit": figure.unit} for figure in FIGURES},
        "summary": summarized(records, base),
        "rounds": {record.name: record.values for record in records},
        "remarks": {record.name: record.remarks for record in records if record.remarks},
    }


def remarks(records: Sequence[Record]) -> str:
    """What went wrong, a line each; empty where nothing did."""
    return "\n".join(f"- {record.name}: {text}" for record in records for text in record.remarks)


def number(value: float) -> str:
    """*value* with as many digits as a noisy machine deserves."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _cell(record: Record, figure: Figure, base: Record | None) -> str:
    value = record.figure(figure)
    if value is None:
        return _MISSING
    shown = number(value) + ("?" if figure.key in record.doubtful else "")
    if base is None or record is base or not figure.compares:
        return shown
    times = ratio(value, base.figure(figure))
    return shown if times is None else f"{shown} ({times:.2f}x)"


def _judged(figure: Figure, by_name: dict[str, Record], base: Record | None, ours: str, full: str) -> tuple[str, str]:
    """The targets of a figure, and whether they are met."""
    told: list[str] = []
    met: list[str] = []
    for name, target in ((ours, figure.target), (full, figure.target_full)):
        record = by_name.get(name)
        value = record.figure(figure) if record is not None else None
        if target is None or value is None:
            continue
        times = ratio(value, base.figure(figure)) if base is not None and figure.compares else None
        about = f"; all on {target.told()}" if name == full and told else target.told()
        told.append(about)
        met.append("yes" if target.met_by(value, times) else "no")
    return "".join(told), ", ".join(met)
