"""The table and the document that a comparison ends with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import machine, plot
from benchmarks.figures import FIGURES, Figure
from benchmarks.report import document, number, remarks, table
from benchmarks.summary import Record

NGINX = Record("nginx", {"request": [20.0, 21.0], "idle": [9.0], "alone p50": [50.0]})
FACTS = {
    "date": "2026-11-30 12:00 UTC",
    "cores": 2,
    "cpu": "a processor",
    "system": "Linux",
    "python": "3.11.7",
    "commit": "abc1234",
    "command": "python benchmarks/compare.py",
    "versions": {"nginx": "1.22.1"},
}


def rows_of(text: str) -> dict[str, list[str]]:
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    return {row[0]: row[1:] for row in cells}


def shown(*records: Record) -> dict[str, list[str]]:
    return rows_of(table([NGINX, *records], "nginx", ours="ours", full="ours, full"))


def test_a_row_holds_each_contestant_with_its_ratio_the_target_and_the_verdict() -> None:
    row = shown(Record("ours", {"request": [60.0, 48.0]}))["a request, 350 B"]

    assert row == ["CPU-µs", "20.0", "48.0 (2.40x)", "≤ 50, ≤ 2.5x", "yes"]


def test_everything_on_has_a_target_of_its_own() -> None:
    row = shown(Record("ours", {"request": [60.0]}), Record("ours, full", {"request": [66.0]}))["a request, 350 B"]

    assert row[-2:] == ["≤ 50, ≤ 2.5x; all on ≤ 75, ≤ 3.5x", "no, yes"]


def test_what_was_not_measured_is_a_dash_and_what_nobody_measured_no_row() -> None:
    rows = shown(Record("ours", {"request": [60.0]}))

    assert rows["memory, idle"] == ["MB", "9.00", "–", "", ""]
    assert "an SSE event, passed on" not in rows


def test_a_figure_taken_while_answers_were_wrong_is_questioned() -> None:
    assert shown(Record("peer", {"request": [60.0]}, doubtful={"request"}))["a request, 350 B"][2] == "60.0? (3.00x)"


def test_memory_is_not_told_in_multiples() -> None:
    assert shown(Record("ours", {"idle": [45.0]}))["memory, idle"] == ["MB", "9.00", "45.0", "≤ 60", "yes"]


def test_without_a_reference_the_value_itself_is_judged() -> None:
    rows = rows_of(table([Record("ours", {"request": [48.0]})], "nginx", ours="ours", full="ours, full"))

    assert rows["a request, 350 B"] == ["CPU-µs", "48.0", "≤ 50, ≤ 2.5x", "yes"]


def test_all_rows_have_as_many_cells() -> None:
    lines = table([NGINX, Record("ours", {"request": [48.0]})], "nginx", ours="ours", full="-").splitlines()

    assert len({line.count("|") for line in lines}) == 1


@pytest.mark.parametrize(
    ("value", "text"), [(22_000.4, "22,000"), (461.6, "462"), (47.25, "47.2"), (0.9345, "0.93"), (-12160.0, "-12,160")]
)
def test_a_number_has_no_more_digits_than_it_deserves(value: float, text: str) -> None:
    assert number(value) == text


def test_the_document_is_json_and_holds_every_round() -> None:
    ours = Record("ours", {"request": [48.0, 60.0]}, remarks=["event: no answer in time"])

    made = json.loads(json.dumps(document([NGINX, ours], "nginx", FACTS)))

    assert made["rounds"]["ours"]["request"] == [48.0, 60.0]
    assert made["summary"]["ours"]["request"]["ratio"] == 2.4
    assert made["remarks"] == {"ours": ["event: no answer in time"]}
    assert made["about"]["commit"] == "abc1234"


def test_remarks_name_whom_they_are_about() -> None:
    assert remarks([NGINX, Record("peer", remarks=["event: 3 of 9 answers were wrong"])]) == (
        "- peer: event: 3 of 9 answers were wrong"
    )


@pytest.mark.parametrize(("load", "marked"), [(0.4, False), (6.5, True)])
def test_a_busy_machine_is_told(load: float, marked: bool) -> None:
    assert ("BUSY" in machine.told({**FACTS, "load_before": load})) is marked


def test_the_facts_of_this_machine_can_be_told(tmp_path: Path) -> None:
    text = machine.told(machine.about(tmp_path, {"nginx": "1.22.1"}))

    assert "nginx 1.22.1 (commit unknown)" in text


@pytest.mark.parametrize("figure", [figure for figure in FIGURES if figure.target], ids=lambda figure: figure.key)
def test_the_document_tells_each_target(figure: Figure) -> None:
    assert figure.target is not None
    document_text = (Path(__file__).resolve().parents[3] / "docs" / "performance.md").read_text()

    assert f"| {figure.label} | {figure.unit} | {figure.target.told()}" in document_text


def test_the_plot_shows_figures_of_which_less_is_better() -> None:
    ours = Record("ours", {"request": [50.0], "request rate": [9_000.0], "idle": [60.0], "alone p50": [-3.0]})

    assert plot.ratios([NGINX, ours], "nginx") == {"ours": {"a request, 350 B": 2.5}}
