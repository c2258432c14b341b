"""From the rounds of a comparison to its figures."""

from __future__ import annotations

import pytest

from benchmarks.figures import BY_KEY, FIGURES, Best, Target
from benchmarks.summary import Record, chosen, ratio, spread, summarized


@pytest.mark.parametrize(("best", "value"), [(Best.LEAST, 3.0), (Best.MEDIAN, 4.0), (Best.MOST, 9.0)])
def test_one_round_stands_for_all(best: Best, value: float) -> None:
    assert chosen([4.0, 9.0, 3.0], best) == value


def test_without_a_round_there_is_no_figure() -> None:
    assert chosen([], Best.LEAST) is None


def test_a_ratio_needs_something_to_compare_with() -> None:
    assert ratio(60.0, 20.0) == 3.0
    assert ratio(60.0, None) is None
    assert ratio(60.0, 0.0) is None


def test_a_difference_below_zero_has_no_ratio() -> None:
    assert ratio(-5.0, 20.0) is None
    assert ratio(5.0, -20.0) is None


def test_the_spread_tells_how_far_the_rounds_lie_apart() -> None:
    assert spread([40.0, 50.0, 60.0]) == 0.5
    assert spread([40.0]) is None


def test_a_difference_is_made_of_the_figures_it_is_of() -> None:
    record = Record("a gateway", {"request": [50.0, 70.0], "request tls": [90.0, 65.0]})

    assert record.figure(BY_KEY["tls adds"]) == 15.0
    assert Record("another", {"request": [50.0]}).figure(BY_KEY["tls adds"]) is None


def test_the_summary_holds_value_ratio_and_spread() -> None:
    base = Record("nginx", {"request": [20.0], "idle": [10.0]})
    ours = Record("ours", {"request": [50.0, 60.0], "idle": [60.0]})

    summary = summarized([base, ours], base)

    assert summary["ours"]["request"] == {"value": 50.0, "ratio": 2.5, "spread": pytest.approx(0.2)}
    assert summary["ours"]["idle"]["ratio"] is None
    assert "event" not in summary["ours"]


def test_a_remark_is_made_once() -> None:
    record = Record("a gateway")

    record.remark("event: no answer in time")
    record.remark("event: no answer in time")

    assert record.remarks == ["event: no answer in time"]


@pytest.mark.parametrize(
    ("target", "value", "times", "met"),
    [
        (Target(50, 2.5), 60.0, 2.4, True),
        (Target(50, 2.5), 40.0, 2.6, False),
        (Target(50, 2.5), 40.0, None, True),
        (Target(50), 60.0, 2.4, False),
        (Target(0.98, at_least=True), 0.97, None, False),
        (Target(20_000, 0.4, at_least=True), 9_000.0, 0.41, True),
        (Target(ratio=1), 5.0, None, True),
    ],
)
def test_a_target_is_judged_by_the_ratio_where_there_is_one(
    target: Target, value: float, times: float | None, met: bool
) -> None:
    assert target.met_by(value, times) is met


def test_differences_are_of_figures_that_exist() -> None:
    named = {key for figure in FIGURES if figure.difference_of for key in figure.difference_of}

    assert named <= set(BY_KEY)
    assert len(BY_KEY) == len(FIGURES)
