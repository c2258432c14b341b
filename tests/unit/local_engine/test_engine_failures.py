"""An engine that cannot start: what it says of it, and how often."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from local_engine.attached import AttachedEngine, state_file
from local_engine.engine import LocalEngine
from local_engine.options import EngineConfig
from local_engine.pace import Pace
from local_engine.probe import Address
from local_engine.state import EngineState, explain, outline

AT_ONCE = Pace(first_backoff_seconds=0.005, longest_backoff_seconds=0.005)


async def until_tried(engine: LocalEngine, times: int) -> None:
    async with asyncio.timeout(10):
        while engine.restarts < times:
            await asyncio.sleep(0.005)


async def test_a_failure_that_repeats_itself_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    weights = tmp_path / "own.gguf"
    engine = LocalEngine(EngineConfig(model=str(weights), store=tmp_path), AT_ONCE)
    await engine.start()
    try:
        await until_tried(engine, 4)
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert "no model file" in caplog.text

        weights.write_bytes(b"not a model")
        await until_tried(engine, engine.restarts + 4)
        assert len(caplog.records) == 2, "another reason is news"
    finally:
        await engine.stop()


async def test_the_reason_for_clients_names_no_files(tmp_path: Path) -> None:
    engine = LocalEngine(EngineConfig(model=str(tmp_path / "own.gguf"), store=tmp_path), AT_ONCE)
    await engine.start()
    try:
        await until_tried(engine, 1)
        assert str(tmp_path) in explain(engine)
        assert outline(engine) == "the local engine 'own' is not ready (failed)"
    finally:
        await engine.stop()


async def test_an_attached_engine_tells_what_its_owner_has_written(tmp_path: Path) -> None:
    engine = AttachedEngine("own", Address(control=str(tmp_path / "engine")), 2)
    assert (engine.state, engine.supports_tools) == (EngineState.STOPPED, None)

    state_file(str(tmp_path / "engine")).write_text(json.dumps(["ready", "", True]))

    assert (engine.state, engine.supports_tools) == (EngineState.READY, True)
