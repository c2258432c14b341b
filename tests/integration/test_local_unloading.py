"""Models that leave memory when nobody needs them, and come back with the next request; no request is lost by it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from local_engine import probe
from local_engine.attached import AttachedEngine
from local_engine.engine import LocalEngine
from local_engine.errors import NoRoomError
from local_engine.options import EngineConfig
from local_engine.room import Room
from local_engine.state import EngineState
from tests.fakes.gguf_files import write_decoder
from tests.integration.conftest import QUICK

SOON = replace(QUICK, look_at_use_seconds=0.05)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="engines are shared by unix sockets and locks")

Make = Callable[..., LocalEngine]


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Make]:
    """Makes engines of one tiny model, for a room and with options of the test's choosing."""
    path = write_decoder(tmp_path / "tiny.gguf")
    made: list[LocalEngine] = []

    def make_one(name: str = "tiny", room: Room | None = None, idle: float | None = None) -> LocalEngine:
        config = EngineConfig(str(path), name, context=512, slots=2, threads=1, idle_unload_seconds=idle)
        made.append(LocalEngine(config, SOON, room))
        return made[-1]

    yield make_one
    for engine in made:
        await engine.stop()


async def ask(engine: LocalEngine | AttachedEngine, max_tokens: int = 1) -> None:
    await engine.claim(100)  # seconds, of which a busy machine takes many to start a process
    try:
        body = {"prompt": "Hello", "max_tokens": max_tokens, "ignore_eos": True}
        assert (await probe.ask(engine.address, "/v1/completions", body))["usage"]["completion_tokens"] == max_tokens
    finally:
        engine.release()


async def until(engine: LocalEngine, *states: EngineState) -> None:
    async with asyncio.timeout(20):
        while engine.state not in states:
            await asyncio.sleep(0.01)


async def test_an_idle_model_is_unloaded_and_the_next_request_loads_it(make: Make) -> None:
    engine = make(idle=0.2)
    await engine.start()
    await ask(engine)
    first = engine.pid
    await until(engine, EngineState.UNLOADED)
    assert engine.pid is None

    await ask(engine)

    assert engine.pid not in (None, first)
    assert (engine.loads, engine.restarts) == (2, 0)


async def test_a_request_that_lasts_longer_than_the_idle_time_is_not_cut_off(make: Make) -> None:
    engine = make(idle=0.1)
    await engine.start()
    await engine.claim(30)
    await asyncio.sleep(0.5)
    assert engine.state is EngineState.READY

    engine.release()
    await until(engine, EngineState.UNLOADED)


async def test_requests_in_the_moment_of_unloading_are_answered(make: Make) -> None:
    engine = make(idle=0.01)
    await engine.start()
    for _ in range(8):
        await asyncio.gather(*(ask(engine) for _ in range(3)))
        await until(engine, EngineState.UNLOADING, EngineState.UNLOADED)

    assert engine.loads >= 4
    assert engine.restarts == 0


async def test_only_so_many_are_loaded_and_the_least_recently_used_makes_room(make: Make) -> None:
    room = Room(limit=2)
    engines = [make(name, room) for name in "abc"]
    for engine in engines:
        await engine.start()
    a, b, c = engines
    await ask(b)
    await ask(a)
    await until(c, EngineState.UNLOADED)

    await ask(c)

    assert [engine.pid is not None for engine in engines] == [True, False, True]
    await ask(b)
    assert [engine.pid is not None for engine in engines] == [False, True, True]


async def test_a_model_with_requests_in_it_is_never_unloaded_for_another(make: Make) -> None:
    room = Room(limit=1, patience_seconds=0.2)
    busy, wanted = make("busy", room), make("wanted", room)
    await busy.start()
    await busy.claim(30)
    await wanted.start()
    waiting = asyncio.create_task(ask(wanted))
    await until(busy, EngineState.UNLOADING)
    late = asyncio.create_task(ask(busy))
    await asyncio.sleep(0.3)
    assert not waiting.done()
    assert not late.done(), "it takes no new requests"
    body = {"prompt": "Hello", "max_tokens": 50, "ignore_eos": True}
    assert (await probe.ask(busy.address, "/v1/completions", body))["usage"]["completion_tokens"] == 50

    busy.release()

    await asyncio.wait_for(asyncio.gather(waiting, late), 30)
    assert (busy.restarts, wanted.restarts) == (0, 0)


async def test_models_that_take_turns_all_answer(make: Make) -> None:
    room = Room(limit=1, patience_seconds=0.1)
    engines = [make(name, room) for name in "abc"]
    for engine in engines:
        await engine.start()

    async with asyncio.timeout(110):
        await asyncio.gather(*(ask(engines[number % 3], 5) for number in range(24)))

    assert sum(engine.pid is not None for engine in engines) == 1
    assert sum(engine.restarts for engine in engines) == 0


async def test_who_waits_in_vain_for_room_is_told(make: Make) -> None:
    room = Room(limit=1, patience_seconds=60)
    busy, wanted = make("busy", room), make("wanted", room)
    for engine in (busy, wanted):
        await engine.start()
    await busy.claim(30)

    with pytest.raises(NoRoomError, match="waits for other models to be unloaded"):
        await wanted.claim(0.3)

    busy.release()


async def test_a_lower_limit_unloads_what_is_too_much(make: Make) -> None:
    room = Room(limit=2)
    engines = [make(name, room) for name in "ab"]
    for engine in engines:
        await engine.start()
        await ask(engine)

    room.limit = 1

    await until(engines[0], EngineState.UNLOADED)
    assert engines[1].state is EngineState.READY


async def test_a_worker_wakes_an_unloaded_model_and_keeps_it_while_it_uses_it(make: Make) -> None:
    engine = make(idle=0.2)
    await engine.start()
    await until(engine, EngineState.READY)
    worker = AttachedEngine(engine.name, engine.address, engine.slots)
    await until(engine, EngineState.UNLOADED)

    await worker.claim(30)
    await asyncio.sleep(0.6)
    assert engine.state is EngineState.READY, "the worker is at it"
    worker.release()
    await until(engine, EngineState.UNLOADED)

    await ask(worker)


async def test_a_worker_takes_no_place_from_under_another_model(make: Make) -> None:
    room = Room(limit=1, patience_seconds=0.2)
    engines = [make(name, room) for name in "ab"]
    for engine in engines:
        await engine.start()
    workers = [AttachedEngine(engine.name, engine.address, engine.slots) for engine in engines]

    async with asyncio.timeout(110):
        await asyncio.gather(*(ask(workers[number % 2], 5) for number in range(12)))

    assert sum(engine.restarts for engine in engines) == 0


async def test_a_model_that_is_missing_takes_no_place_and_is_tried_again_when_asked_for(
    make: Make, tmp_path: Path
) -> None:
    room = Room(limit=1)
    good = make("good", room)
    await good.start()
    await ask(good)
    loaded = good.pid
    missing = LocalEngine(EngineConfig(str(tmp_path / "later.gguf"), context=512), SOON, room)
    await missing.start()
    try:
        await until(missing, EngineState.UNLOADED)
        for _ in range(3):
            missing.wake()
            await until(missing, EngineState.FAILED)
            await asyncio.sleep(0.2)
        assert good.pid == loaded, "it was not moved for nothing"

        write_decoder(tmp_path / "later.gguf")
        await asyncio.sleep(1)
        assert good.pid == loaded, "nor for what nobody asks for"
        missing.wake()
        await until(missing, EngineState.READY)
        assert good.pid is None
    finally:
        await missing.stop()


async def test_an_engine_that_fails_to_load_lets_others_have_its_place(make: Make, tmp_path: Path) -> None:
    room = Room(limit=1)
    broken = LocalEngine(EngineConfig(str(tmp_path / "nowhere.gguf")), SOON, room)
    await broken.start()
    await until(broken, EngineState.FAILED)
    good = make("good", room)
    await good.start()

    await ask(good)

    await broken.stop()
