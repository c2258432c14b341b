"""A real engine with a real model: how it starts, answers, fails, comes back and ends."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from local_engine import probe
from local_engine.attached import AttachedEngine
from local_engine.engine import LocalEngine
from local_engine.errors import EngineCrashedError, EngineDownError
from local_engine.pace import Pace
from local_engine.probe import Address
from local_engine.state import EngineState

MakeEngine = Callable[..., LocalEngine]


async def until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.02)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_ready_engine_answers_on_a_socket_only_its_user_can_reach(engine: LocalEngine) -> None:
    assert engine.state is EngineState.READY
    answer = await probe.time_completion(engine.address, "Say hi.", 4)

    assert answer["model"] == engine.name
    assert answer["usage"]["completion_tokens"] == 4
    assert engine.socket_path is not None
    assert len(engine.socket_path) < 104
    assert stat.S_IMODE(Path(engine.socket_path).parent.stat().st_mode) == 0o700


async def test_stopping_leaves_neither_process_nor_files(start_engine: MakeEngine) -> None:
    engine = start_engine()
    await engine.start()
    await engine.wait_ready(60)
    pid, socket_path = engine.pid, engine.socket_path
    assert pid is not None
    assert socket_path is not None

    await engine.stop()

    assert engine.state is EngineState.STOPPED
    assert not is_running(pid)
    assert not Path(socket_path).parent.exists()
    with pytest.raises(EngineDownError, match="stopped"):
        await engine.wait_ready(1)


async def test_stopping_while_the_model_loads_ends_the_process(start_engine: MakeEngine) -> None:
    engine = start_engine()
    await engine.start()
    await until(lambda: engine.pid is not None)
    pid = engine.pid
    assert pid is not None

    await engine.stop()

    assert not is_running(pid)


async def test_a_killed_engine_comes_back_at_the_same_address(engine: LocalEngine) -> None:
    killed, address = engine.pid, engine.address
    assert killed is not None
    os.kill(killed, signal.SIGKILL)
    await until(lambda: engine.state is not EngineState.READY)

    assert engine.state is EngineState.RESTARTING
    assert "SIGKILL" in engine.last_error
    assert engine.log_tail, "the log of the process that died is kept"

    await engine.wait_ready(60)
    assert engine.restarts == 1
    assert engine.pid != killed
    assert engine.address == address
    assert (await probe.time_completion(address, "Say hi.", 1))["usage"]["completion_tokens"] == 1


async def test_an_engine_that_keeps_dying_is_reported_failed_but_not_given_up(start_engine: MakeEngine) -> None:
    pace = Pace(first_backoff_seconds=0.05, longest_backoff_seconds=0.2, failures_until_failed=2)
    engine = start_engine(pace)
    await engine.start()
    for _ in range(2):
        await until(lambda: engine.pid is not None)
        assert engine.pid is not None
        os.kill(engine.pid, signal.SIGKILL)
        await until(lambda: engine.pid is None)
    await until(lambda: engine.state is EngineState.FAILED)

    with pytest.raises(EngineDownError, match=r"\(failed\): .*SIGKILL"):
        await engine.wait_ready(60)

    await until(lambda: engine.state is EngineState.READY)


async def test_an_engine_that_hangs_is_started_again(start_engine: MakeEngine) -> None:
    engine = start_engine(Pace(first_backoff_seconds=0.1, health_interval_seconds=0.1, health_timeout_seconds=0.3))
    await engine.start()
    await engine.wait_ready(60)
    hanging = engine.pid
    assert hanging is not None
    os.kill(hanging, signal.SIGSTOP)
    await until(lambda: engine.state is EngineState.RESTARTING)

    assert "hung" in engine.last_error
    await engine.wait_ready(60)
    assert not is_running(hanging)


async def test_a_file_the_engine_cannot_read_fails_at_once_with_its_reason(
    start_engine: MakeEngine, model_file: Path, tmp_path: Path
) -> None:
    cut_off = tmp_path / "cut-off.gguf"
    with model_file.open("rb") as whole:
        cut_off.write_bytes(whole.read(8_000_000))
    engine = start_engine(model=str(cut_off))
    await engine.start()

    with pytest.raises(EngineDownError, match=r"could not serve .*cut-off\.gguf"):
        await engine.wait_ready(60)
    assert engine.state is EngineState.FAILED
    assert any("failed to load model" in line for line in engine.log_tail)


async def test_a_missing_model_is_used_as_soon_as_it_is_there(
    start_engine: MakeEngine, model_file: Path, tmp_path: Path
) -> None:
    engine = start_engine(store=tmp_path)
    await engine.start()
    with pytest.raises(EngineDownError, match="gateway local pull"):
        await engine.wait_ready(60)

    (tmp_path / model_file.name).symlink_to(model_file)

    await until(lambda: engine.state is EngineState.READY)


async def test_embeddings_are_served_when_asked_for(start_engine: MakeEngine) -> None:
    engine = start_engine(embeddings=True)
    await engine.start()
    await engine.wait_ready(60)

    answer = await probe.ask(engine.address, "/v1/embeddings", {"input": ["one", "two"]})

    assert [len(item["embedding"]) for item in answer["data"]] == [576, 576]
    assert (await probe.time_completion(engine.address, "Say hi.", 2))["usage"]["completion_tokens"] == 2


async def test_on_a_loopback_port_a_key_is_needed(start_engine: MakeEngine) -> None:
    engine = start_engine(loopback_port=True)
    await engine.start()
    await engine.wait_ready(60)

    assert engine.address.port
    with pytest.raises(EngineCrashedError, match="401"):
        await probe.time_completion(Address(port=engine.address.port), "Say hi.", 1)


async def test_a_worker_sees_how_the_engine_of_its_parent_is(engine: LocalEngine) -> None:
    worker = AttachedEngine(engine.name, engine.address, engine.slots)
    assert worker.state is EngineState.READY
    assert worker.supports_tools is False
    await worker.claim(1)
    worker.release()

    assert engine.pid is not None
    os.kill(engine.pid, signal.SIGKILL)
    await until(lambda: worker.state is EngineState.RESTARTING)
    assert "SIGKILL" in worker.last_error
    await worker.claim(60)
    worker.release()

    await engine.stop()
    await until(lambda: worker.state is EngineState.STOPPED)
    with pytest.raises(EngineDownError, match="stopped"):
        await worker.claim(1)
