"""Bridges of a gateway that is a process of its own: they end with it, and its workers share them."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.bridged import STAND_IN, bridge, events
from tests.fakes.gateway_process import GatewayProcess, gateway_process


def config(log: Path, workers: int = 1) -> dict[str, Any]:
    return {
        "version": 1,
        "server": {"port": 0, "workers": workers},
        "auth": {"mode": "open"},
        "providers": {"acme": bridge(log)},
        "models": {"m": {"targets": [{"provider": "acme", "model": "acme/m"}]}},
    }


async def answered(gateway: GatewayProcess) -> None:
    client = await gateway.chat()
    answer = await client.answer(30)
    assert answer.status == 200, answer.body


async def state(gateway: GatewayProcess) -> str:
    client = await gateway.connect()
    await client.send(b"GET /health/ready HTTP/1.1\r\nHost: x\r\n\r\n")
    told: str = (await client.answer(10)).json["checks"]["bridge acme"]["state"]
    return told


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def gone(pid: int) -> None:
    async with asyncio.timeout(20):
        while alive(pid):
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
async def test_a_bridge_ends_with_its_gateway_however_that_ends(tmp_path: Path, end: signal.Signals) -> None:
    log = tmp_path / "log.jsonl"
    async with gateway_process(tmp_path, config(log), modules=[STAND_IN]) as gateway:
        await gateway.until_ready()
        await answered(gateway)
        pid = events(log)[0]["pid"]

        gateway.signal(end)
        await gateway.ended()

        await gone(pid)


async def test_workers_share_one_bridge(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    async with gateway_process(tmp_path, config(log, workers=2), modules=[STAND_IN]) as gateway:
        await gateway.until_ready()
        assert await state(gateway) == "idle"
        for _ in range(8):
            await answered(gateway)

        assert len({event["pid"] for event in events(log)}) == 1
        for _ in range(8):  # whichever of them is asked
            assert await state(gateway) == "ready"


async def test_a_gateway_without_the_library_does_not_start(tmp_path: Path) -> None:
    async with gateway_process(tmp_path, config(tmp_path / "log.jsonl")) as gateway:
        assert await gateway.ended() == 1

    assert "pip install 'switchgear[litellm]'" in gateway.errors
    assert "Traceback" not in gateway.errors
