"""Plain numbers become text that a strict scraper accepts."""

from __future__ import annotations

from bisect import bisect_left

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.telemetry.series import Family, Table, add, render
from tests.unit.telemetry.prometheus_text import parse

COUNTER = Family("test_total", "counter", "A counter\nwith a \\ in its help.", ("who",))
HISTOGRAM = Family("test_seconds", "histogram", "A histogram.", ("who",), (0.1, 0.2, 0.4))


@given(st.text())
def test_any_label_value_survives_the_text_format(value: str) -> None:
    table = Table([COUNTER])
    table.series("test_total", value)[0] += 3

    parsed = parse(render([COUNTER], table.copy()))

    assert parsed["test_total"].value("test_total", who=value) == 3


@given(st.lists(st.floats(0, 1), max_size=50))
def test_a_histogram_counts_each_observation_in_every_bucket_that_holds_it(values: list[float]) -> None:
    table = Table([HISTOGRAM])
    numbers = table.series("test_seconds", "a")
    for value in values:
        numbers[bisect_left(HISTOGRAM.buckets, value)] += 1
        numbers[-1] += value

    parsed = parse(render([HISTOGRAM], table.copy()))["test_seconds"]

    for bound in HISTOGRAM.buckets:
        inside = sum(value <= bound for value in values)
        assert parsed.value("test_seconds_bucket", who="a", le=f"{bound:g}") == inside
    assert parsed.value("test_seconds_count", who="a") == len(values)
    assert parsed.value("test_seconds_sum", who="a") == pytest.approx(sum(values))


def test_a_family_without_series_is_still_announced() -> None:
    parsed = parse(render([COUNTER, HISTOGRAM], {}))

    assert {name: family.type for name, family in parsed.items()} == {
        "test_total": "counter",
        "test_seconds": "histogram",
    }


def test_series_past_the_ceiling_are_counted_as_other() -> None:
    table = Table([COUNTER], ceiling=2)
    for who in ("a", "b", "c", "d", "a"):
        table.series("test_total", who)[0] += 1

    parsed = parse(render([COUNTER], table.copy()))["test_total"]

    counted = {dict(labels)["who"]: value for (_, labels), value in parsed.samples.items()}
    assert counted == {"a": 2, "b": 1, "other": 2}


def test_money_is_counted_in_whole_nano_dollars_and_shown_in_dollars() -> None:
    money = Family("test_usd_total", "counter", "Money.", unit=1e-9)
    table = Table([money])
    for _ in range(3):
        table.series("test_usd_total")[0] += 100_000_001

    assert b"test_usd_total 0.300000003\n" in render([money], table.copy())


def test_adding_keeps_series_that_only_one_side_has() -> None:
    total: dict[tuple[str, ...], list[float]] = {("a",): [1.0, 2.0]}

    add(total, {("a",): [10.0, 20.0], ("b",): [5.0, 5.0]})

    assert total == {("a",): [11.0, 22.0], ("b",): [5.0, 5.0]}
