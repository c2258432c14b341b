"""Many clients over more models than may be loaded, some of which leave: all are answered, and nothing stays taken."""

from __future__ import annotations

import asyncio
import random
import sys
from pathlib import Path
from typing import Any

import pytest

from local_engine.engine import LocalEngine
from local_engine.state import EngineState
from tests.fakes.gateway import RunningGateway, request, running_gateway
from tests.fakes.gguf_files import write_decoder

CHAT = "/v1/chat/completions"
NAMES = ("a", "b", "c")
CLIENTS, REQUESTS = 8, 6

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="engines are shared by unix sockets and locks")


async def _ask(gateway: RunningGateway, chance: random.Random) -> int | None:
    """The status of an answer that was waited for; None for a client that left."""
    body = {"model": chance.choice(NAMES), "messages": [{"role": "user", "content": "hi"}], "ignore_eos": True}
    body |= {"max_tokens": chance.choice([1, 40, 200]), "stream": chance.random() < 0.5}
    client = await gateway.connect()
    await client.send(request(CHAT, body))
    if chance.random() < 0.3:
        await asyncio.sleep(chance.random() * 0.5)
        client.reset()
        return None
    answer = await client.answer(100)
    await client.close()
    return answer.status


async def test_models_that_change_places_under_a_crowd_answer_everybody(tmp_path: Path) -> None:
    provider = {"type": "local", "model_path": str(write_decoder(tmp_path / "d.gguf")), "context": 256, "threads": 1}
    settings: dict[str, Any] = {
        "providers": {name: {**provider, "idle_unload": "300ms"} for name in NAMES},
        "models": {name: {"targets": [{"provider": name}]} for name in NAMES},
        "local_engine": {"max_loaded": 2},
    }
    chance = random.Random(5)
    async with running_gateway(settings) as gateway:

        async def client() -> list[int | None]:
            return [await _ask(gateway, chance) for _ in range(REQUESTS)]

        served = [
            status for statuses in await asyncio.gather(*(client() for _ in range(CLIENTS))) for status in statuses
        ]
        await gateway.quiet()
        backends = gateway.services.backends
        engines = [engine for engine in backends._engines.values() if isinstance(engine, LocalEngine)]

        assert set(served) == {200, None}
        assert [engine._occupancy.claims for engine in engines] == [0, 0, 0]
        assert [(queue.free_slots, queue.waiting) for queue in backends.queues.values()] == [(2, 0)] * 3
        assert sum(engine.restarts for engine in engines) == 0
        assert max(engine.loads for engine in engines) > 1
        await gateway.wait_for(lambda: all(engine.state is EngineState.UNLOADED for engine in engines), 30)
