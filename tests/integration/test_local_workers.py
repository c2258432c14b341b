"""Several workers over one local engine: what one of them does to it, or dies of, is nothing to the others."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.gateway_process import GatewayProcess, gateway_process
from tests.fakes.raw_client import RawClient, post

CHAT = "/v1/chat/completions"
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")


def config(**provider: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "server": {"port": 0, "workers": 2},
        "providers": {"local": {"type": "local", "context": 2048, "slots": 2, **provider}},
        "models": {"small": {"targets": [{"provider": "local"}]}},
        "telemetry": {"log_format": "json"},
    }


def processes(gateway: GatewayProcess, module: str) -> list[int]:
    """Its children that run *module*."""
    lines = {pid: Path(f"/proc/{pid}/cmdline") for pid in gateway.children()}
    return [pid for pid, line in lines.items() if line.exists() and module.encode() in line.read_bytes()]


async def ask(gateway: GatewayProcess, max_tokens: int, *, stream: bool = True) -> RawClient:
    key = next(word for word in gateway.curl if word.startswith("Authorization"))
    body = {"model": "small", "messages": [{"role": "user", "content": "Tell a story."}], "stream": stream}
    body |= {"temperature": 0, "max_tokens": max_tokens, "logit_bias": {"2": -100}}
    client = await gateway.connect()
    await client.send(post(CHAT, json.dumps(body).encode(), key))
    return client


async def until(condition: Any, seconds: float = 30.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.05)


@pytest.mark.long
@pytest.mark.usefixtures("model_file")
async def test_workers_that_are_killed_leave_the_engine_to_those_that_follow(tmp_path: Path) -> None:
    async with gateway_process(tmp_path, config()) as gateway:
        await gateway.until_ready()
        engines, workers = processes(gateway, "local_engine.child"), processes(gateway, "gateway.worker")
        clients = [await ask(gateway, 1500) for _ in range(4)]
        for client in clients[:2]:
            assert (await client.head())[0] == 200

        for worker in workers:
            os.kill(worker, signal.SIGKILL)
        await until(lambda: len(set(processes(gateway, "gateway.worker")) - set(workers)) == 2)
        # The engine notices that nobody is at the other end, and has its slots free again.
        answer = await (await ask(gateway, 3, stream=False)).answer(60)

        assert answer.status == 200, answer.body
        assert processes(gateway, "local_engine.child") == engines
        assert len(engines) == 1


@pytest.mark.usefixtures("model_file")
async def test_a_killed_worker_holds_no_model_in_memory(tmp_path: Path) -> None:
    async with gateway_process(tmp_path, config(idle_unload="1s")) as gateway:
        await gateway.until_ready()
        workers = processes(gateway, "gateway.worker")
        client = await ask(gateway, 1500)
        assert (await client.head())[0] == 200
        await asyncio.sleep(2.5)
        assert len(processes(gateway, "local_engine.child")) == 1, "a worker uses it"

        for worker in workers:
            os.kill(worker, signal.SIGKILL)
        await until(lambda: not processes(gateway, "local_engine.child"))
        await until(lambda: len(set(processes(gateway, "gateway.worker")) - set(workers)) == 2)

        answer = await (await ask(gateway, 3, stream=False)).answer(60)
        assert answer.status == 200, answer.body
        assert len(processes(gateway, "local_engine.child")) == 1
