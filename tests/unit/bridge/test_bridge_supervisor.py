"""A bridge that cannot run refuses, and one that can again answers again; over its real socket and process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.bridge.orders import Orders
from gateway.bridge.state import BridgeState, state_at
from gateway.bridge.supervisor import Bridge, Pace
from tests.fakes.bridged import events, stand_in_on_path

QUICK = Pace(first_backoff_seconds=0.02, longest_backoff_seconds=0.2)
BODY = b'{"model": "acme/m", "messages": []}'


class Told:
    """What the bridge's process is told; changed between two starts of it."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.importing = ""

    def __call__(self) -> Orders:
        environ = {"STAND_IN_LOG": str(self.log), "STAND_IN_IMPORT": self.importing}
        return Orders(os.getpid(), 2 << 30, environ=environ)


@pytest.fixture
def told(tmp_path: Path) -> Told:
    return Told(tmp_path / "log.jsonl")


@pytest.fixture
async def bridge(told: Told) -> AsyncIterator[Bridge]:
    with stand_in_on_path():
        bridge = Bridge("acme", told, QUICK)
        await bridge.start()
        yield bridge
        await bridge.stop()


async def ask(bridge: Bridge) -> bytes:
    """One request over a connection of its own; its whole answer, which is empty when the connection broke."""
    async with asyncio.timeout(30):
        reader, writer = await asyncio.open_unix_connection(bridge.socket_path)
        head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
        writer.write(head % len(BODY) + BODY)
        try:
            return await reader.read()
        except ConnectionError:
            return b""
        finally:
            writer.close()


async def test_it_is_idle_until_somebody_asks(bridge: Bridge) -> None:
    assert (bridge.state, state_at(bridge.socket_path), bridge.pid) == (BridgeState.IDLE, BridgeState.IDLE, None)

    answer = await ask(bridge)

    assert answer.startswith(b"HTTP/1.1 200")
    assert bridge.state is state_at(bridge.socket_path) is BridgeState.READY


async def test_requests_that_come_while_it_starts_are_all_answered_by_one_process(bridge: Bridge, told: Told) -> None:
    answers = await asyncio.gather(*(ask(bridge) for _ in range(20)))

    assert all(answer.startswith(b"HTTP/1.1 200") for answer in answers)
    assert len({event["pid"] for event in events(told.log)}) == 1


@pytest.mark.parametrize("importing", ["fails", "exits"])
async def test_one_that_cannot_start_refuses_and_comes_back_when_it_can(
    bridge: Bridge, told: Told, importing: str
) -> None:
    told.importing = importing

    refused = await ask(bridge)

    assert refused.startswith(b"HTTP/1.1 503")
    assert b"bridge_down" in refused
    assert bridge.last_error

    told.importing = ""
    async with asyncio.timeout(30):
        while not (await ask(bridge)).startswith(b"HTTP/1.1 200"):
            pass


async def test_stopping_it_leaves_no_socket_and_no_process(bridge: Bridge) -> None:
    await ask(bridge)
    pid, place = bridge.pid, Path(bridge.socket_path)
    assert pid is not None

    await bridge.stop()

    assert not place.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert bridge.state is state_at(bridge.socket_path) is BridgeState.STOPPED


async def test_only_its_owner_may_enter_where_the_socket_is(bridge: Bridge) -> None:
    assert Path(bridge.socket_path).parent.stat().st_mode & 0o077 == 0
