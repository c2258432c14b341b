"""One run of the engine's process, with any other process in its place."""

from __future__ import annotations

import asyncio
import logging
import sys

from local_engine.supervisor import EngineProcess


async def running() -> EngineProcess:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        "import time; time.sleep(60)",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    return EngineProcess(process, logging.getLogger(__name__))


async def test_who_stops_waiting_for_the_end_leaves_the_process_watched_and_stoppable() -> None:
    engine = await running()
    for wait in (engine.crashed(), engine.wait_listening(60)):
        waiter = asyncio.create_task(wait)
        await asyncio.sleep(0)
        waiter.cancel()
        await asyncio.wait([waiter])
        assert waiter.cancelled()

    assert not engine.exited.done()
    await engine.stop()
    assert engine.exited.result() < 0
