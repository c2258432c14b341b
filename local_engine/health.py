"""Whether an engine's server answers: waited for at its start, and watched as long as it runs."""

from __future__ import annotations

import asyncio

from local_engine import probe
from local_engine.errors import EngineCrashedError
from local_engine.pace import Pace
from local_engine.probe import Address


async def until_healthy(address: Address, pace: Pace, within_seconds: float) -> None:
    """Return when the server answers; `EngineCrashedError` when it does not in time."""
    try:
        async with asyncio.timeout(within_seconds):
            while not await probe.is_healthy(address, pace.health_timeout_seconds):  # noqa: ASYNC110 - of this no event tells
                await asyncio.sleep(0.1)
    except TimeoutError as error:
        raise EngineCrashedError(f"the command did not answer /health within {within_seconds:g} s") from error


async def watch(address: Address, pace: Pace) -> None:
    """Raise `EngineCrashedError` when the process lives but does not answer any more."""
    unanswered = 0
    while unanswered < pace.unanswered_until_hung:
        await asyncio.sleep(pace.health_interval_seconds)
        healthy = await probe.is_healthy(address, pace.health_timeout_seconds)
        unanswered = 0 if healthy else unanswered + 1
    raise EngineCrashedError("the engine's process hung and was ended")
