"""Workers that share a directory see each other's counters, and the gauges of those that live."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest

from gateway.telemetry.snapshots import RUNTIME_DIR_VARIABLE, Snapshots, publish_regularly


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_a_worker_sees_what_the_others_wrote_but_not_its_own_file(tmp_path: Path) -> None:
    clock = Clock()
    one, two = Snapshots(tmp_path, clock), Snapshots(tmp_path, clock)
    one.write({"c_total": {("a",): [1]}}, {"g": {(): [7]}})
    two.write({"c_total": {("a",): [2]}}, {})

    (seen,) = two.of_others()

    assert seen.counters == {"c_total": {("a",): [1]}}
    assert seen.gauges == {"g": {(): [7]}}


def test_a_later_write_replaces_the_earlier_one(tmp_path: Path) -> None:
    one, two = Snapshots(tmp_path), Snapshots(tmp_path)
    one.write({"c_total": {(): [1]}}, {})
    one.write({"c_total": {(): [5]}}, {})

    assert [seen.counters for seen in two.of_others()] == [{"c_total": {(): [5]}}]


def test_a_silent_worker_keeps_its_counters_and_loses_its_gauges(tmp_path: Path) -> None:
    clock = Clock()
    dead, living = Snapshots(tmp_path, clock), Snapshots(tmp_path, clock)
    dead.write({"c_total": {(): [4]}}, {"g": {(): [1]}})

    clock.now += 60

    (seen,) = living.of_others()
    assert seen.counters == {"c_total": {(): [4]}}
    assert seen.gauges == {}


def test_a_file_that_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "metrics-torn.json").write_bytes(b'[1.0,{"c_total":[[')
    (tmp_path / "metrics-foreign.json").write_bytes(b'{"hello": 1}')

    assert list(Snapshots(tmp_path).of_others()) == []


def test_a_single_worker_shares_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(RUNTIME_DIR_VARIABLE, raising=False)
    assert Snapshots.from_environment() is None

    monkeypatch.setenv(RUNTIME_DIR_VARIABLE, str(tmp_path))
    assert Snapshots.from_environment() is not None


async def test_figures_are_published_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.telemetry.snapshots.WRITE_EVERY_SECONDS", 0.001)
    calls = asyncio.Semaphore(0)

    task = asyncio.create_task(publish_regularly(calls.release))
    async with asyncio.timeout(10):
        await calls.acquire()
        await calls.acquire()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
