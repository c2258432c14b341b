"""A strict reader of Prometheus text format 0.0.4, for tests: what it accepts, a scraper accepts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*\Z")
_SAMPLE = re.compile(r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(?P<labels>.*)\})? (?P<value>\S+)\Z")
_LABEL = re.compile(r'(?P<name>[a-zA-Z_][a-zA-Z0-9_]*)="(?P<value>(?:[^"\\\n]|\\["\\n])*)"(?:,|\Z)')
_ESCAPES = {r"\\": "\\", r"\"": '"', r"\n": "\n"}

Labels = frozenset[tuple[str, str]]


@dataclass
class ParsedFamily:
    """One metric: its type and the value of each of its samples."""

    type: str
    help: str
    samples: dict[tuple[str, Labels], float] = field(default_factory=dict)

    def value(self, name: str, **labels: str) -> float:
        return self.samples[name, frozenset(labels.items())]


def parse(text: bytes) -> dict[str, ParsedFamily]:
    """Families by name; an AssertionError says what is wrong with the text."""
    assert text.endswith(b"\n"), "the last line must end with a line feed"
    families: dict[str, ParsedFamily] = {}
    help_of: dict[str, str] = {}
    current = ""
    for line in text.decode("utf-8").removesuffix("\n").split("\n"):
        if line.startswith("# HELP "):
            name, _, help_text = line[7:].partition(" ")
            assert _NAME.match(name), line
            assert name not in help_of, f"{name}: HELP twice"
            help_of[name] = help_text
        elif line.startswith("# TYPE "):
            name, _, kind = line[7:].partition(" ")
            assert name not in families, f"{name}: TYPE twice"
            assert kind in {"counter", "gauge", "histogram"}, line
            assert kind != "counter" or name.endswith("_total"), f"{name}: a counter ends in _total"
            families[name] = ParsedFamily(kind, help_of[name])
            current = name
        else:
            match = _SAMPLE.match(line)
            assert match, f"not a sample: {line!r}"
            assert match["name"] in _sample_names(current, families[current].type), f"{line!r} stands under {current}"
            key = (match["name"], _labels(match["labels"] or ""))
            assert key not in families[current].samples, f"twice: {line!r}"
            families[current].samples[key] = float(match["value"])
    for name, family in families.items():
        if family.type == "histogram":
            _check_histogram(name, family)
    return families


def _sample_names(family: str, kind: str) -> set[str]:
    return {f"{family}_bucket", f"{family}_sum", f"{family}_count"} if kind == "histogram" else {family}


def _labels(text: str) -> Labels:
    found: dict[str, str] = {}
    position = 0
    while position < len(text):
        match = _LABEL.match(text, position)
        assert match, f"not labels: {text!r}"
        assert match["name"] not in found, f"label twice: {text!r}"
        found[match["name"]] = re.sub(r'\\["\\n]', lambda escape: _ESCAPES[escape[0]], match["value"])
        position = match.end()
    return frozenset(found.items())


def _check_histogram(name: str, family: ParsedFamily) -> None:
    by_labels: dict[Labels, list[tuple[float, float]]] = {}
    for (sample, labels), value in family.samples.items():
        if sample == f"{name}_bucket":
            bound = next(float(v) for k, v in labels if k == "le")
            rest = frozenset(pair for pair in labels if pair[0] != "le")
            by_labels.setdefault(rest, []).append((bound, value))
    for labels, buckets in by_labels.items():
        assert buckets == sorted(buckets), f"{name}: buckets out of order"
        assert [count for _, count in buckets] == sorted(count for _, count in buckets), f"{name}: not cumulative"
        assert buckets[-1] == (float("inf"), family.samples[f"{name}_count", labels]), f"{name}: +Inf is not the count"
        assert (f"{name}_sum", labels) in family.samples
