"""Who uses an engine: this process by counting, others by the lease they hold."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from local_engine.lease import Bell, Lease, ring
from local_engine.occupancy import Occupancy

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="engines are not shared there")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_it_is_empty_when_every_claim_was_given_back() -> None:
    clock = Clock()
    occupancy = Occupancy(clock)
    occupancy.claim()
    occupancy.claim()
    occupancy.release()
    clock.now = 5
    assert (occupancy.empty(), occupancy.idle_seconds) == (False, 0)

    occupancy.release()
    clock.now = 7

    assert (occupancy.empty(), occupancy.idle_seconds) == (True, 2)
    assert occupancy.freed.is_set()


def test_another_process_keeps_it_and_is_kept_out(tmp_path: Path) -> None:
    clock = Clock()
    occupancy, other = Occupancy(clock), Lease(tmp_path / "lease")
    occupancy.share_by(tmp_path / "lease")
    clock.now = 5
    assert other.share()
    assert not occupancy.empty()
    assert occupancy.idle_seconds == 0, "it is in use"

    other.give_back()
    clock.now = 9
    assert occupancy.idle_seconds == 0, "it was, since the last look"
    assert occupancy.empty()
    assert not other.share()

    occupancy.reopen()
    assert other.share()
    occupancy.close()


def test_a_process_that_is_killed_lets_go(tmp_path: Path) -> None:
    path = tmp_path / "lease"
    code = (
        "import sys; from pathlib import Path; from local_engine.lease import Lease\n"
        f"lease = Lease(Path({str(path)!r})); print(lease.share(), flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"True\n"
        owner = Lease(path)
        assert not owner.take_alone()
        process.kill()
        process.wait()

    assert owner.take_alone()


async def test_a_bell_is_heard_and_one_that_is_gone_does_no_harm(tmp_path: Path) -> None:
    heard = asyncio.Event()
    bell = Bell(tmp_path / "bell", heard.set)
    ring(tmp_path / "bell")
    await asyncio.wait_for(heard.wait(), 5)

    bell.close()
    ring(tmp_path / "bell")
