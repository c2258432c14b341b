"""A child that is stopped is gone when that returns, however it returns."""

from __future__ import annotations

import asyncio
import logging
import sys

import pytest

from local_engine.child_process import ChildProcess

_STUBBORN = (
    "import signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('{}', flush=True); sys.stdin.read()"
)


async def stubborn_child() -> ChildProcess:
    """One that does not heed SIGTERM, and has reported."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        _STUBBORN,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    child = ChildProcess(process, logging.getLogger("child"))
    assert await child.failure() is None
    return child


@pytest.mark.skipif(sys.platform == "win32", reason="a process cannot refuse to end there")
async def test_whoever_is_cancelled_while_asking_politely_leaves_no_child_behind() -> None:
    child = await stubborn_child()
    stopping = asyncio.create_task(child.stop())
    await asyncio.sleep(0.05)
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping

    assert child.exited.done()
    assert child.exited.result() == -9


@pytest.mark.skipif(sys.platform == "win32", reason="a process cannot refuse to end there")
async def test_a_child_that_does_not_heed_is_killed() -> None:
    child = await stubborn_child()
    await child.stop()

    assert child.exited.result() == -9
    await child.stop()
