"""Modules that are loaded late come whole, to all who wait for them, and hold nobody else up."""

from __future__ import annotations

import asyncio
import gc
import sys
from pathlib import Path

import pytest

from gateway.late import load

_SLOW = "import time\nbegun = True\ntime.sleep(0.2)\nready = True\n"


async def test_who_asks_while_a_module_is_loaded_gets_it_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow_to_load.py").write_text(_SLOW)
    monkeypatch.syspath_prepend(tmp_path)
    first = asyncio.create_task(load("slow_to_load"))
    turns = 0
    while not hasattr(sys.modules.get("slow_to_load"), "begun"):
        await asyncio.sleep(0.001)

    second = asyncio.create_task(load("slow_to_load"))
    while not second.done():
        turns += 1
        await asyncio.sleep(0.001)

    assert turns > 1, "the event loop stood still"
    assert (await first) is (await second)
    assert (await second).ready


async def test_a_module_that_cannot_be_loaded_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError):
        await load("comes_later")
    (tmp_path / "comes_later.py").write_text("")

    assert (await load("comes_later")).__name__ == "comes_later"


async def test_what_comes_late_is_left_alone_by_a_collector_that_leaves_modules_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("one_more", "yet_another"):
        (tmp_path / f"{name}.py").write_text("kept = [[] for _ in range(10_000)]")
    frozen = gc.get_freeze_count() > 0  # the tests around this one may do so too
    gc.unfreeze()
    try:
        await load("one_more")
        assert gc.get_freeze_count() == 0

        gc.freeze()
        before = gc.get_freeze_count()
        await load("yet_another")
        # Some of what was frozen may have ended meanwhile.
        assert gc.get_freeze_count() >= before + 5_000
    finally:
        gc.unfreeze()
        if frozen:
            gc.freeze()
