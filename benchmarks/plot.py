"""The table as a picture, where matplotlib is installed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.figures import FIGURES
from benchmarks.summary import Record, ratio

_MARKS: Final = ("o", "D", "s", "^", "v", "<", ">", "P", "X", "*")


class NoMatplotlibError(Exception):
    """There is nothing to draw with."""


def plot(records: Sequence[Record], reference: str, path: Path, caption: str) -> None:
    """Draw how many times *reference*'s each figure is, a row of dots a figure; *path* says by its ending in what."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise NoMatplotlibError("no plot: matplotlib is not installed (see benchmarks/README.md)") from None
    mpl.use("Agg")
    from matplotlib import pyplot

    dots = ratios(records, reference)
    labels = list(dict.fromkeys(label for by_label in dots.values() for label in by_label))
    drawing, axes = pyplot.subplots(figsize=(9, 1.5 + 0.35 * len(labels)))
    for place, (name, by_label) in enumerate(dots.items()):
        rows = [labels.index(label) for label in by_label]
        axes.plot(list(by_label.values()), rows, _MARKS[place % len(_MARKS)], markersize=6, label=name)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.grid(alpha=0.3)
    axes.set_xlabel(f"times {reference}; further left is better\n{caption}", fontsize=8)
    axes.legend(fontsize=8)
    drawing.tight_layout()
    drawing.savefig(path, dpi=120)
    pyplot.close(drawing)


def ratios(records: Sequence[Record], reference: str) -> dict[str, dict[str, float]]:
    """By contestant and figure, for all figures of which the reference has one and less is better."""
    base = next((record for record in records if record.name == reference), None)
    made: dict[str, dict[str, float]] = {}
    for record in records:
        for figure in FIGURES:
            if base is None or record is base or not figure.compares or figure.key == "request rate":
                continue
            times = ratio(record.figure(figure), base.figure(figure))
            if times is not None and times > 0:
                made.setdefault(record.name, {})[figure.label] = times
    return made
