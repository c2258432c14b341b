"""One run of a bridge's process: start it with little of our environment, and hear that it answers."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from typing import Self

from gateway.bridge.errors import BridgeCrashedError, BridgeError, BridgeUnusableError
from gateway.bridge.orders import ChildExit, Orders
from local_engine.child_process import PYTHON, ChildProcess, how_it_ended, module_path

_log = logging.getLogger("gateway.bridge.child")

# What interpreters and TLS libraries read. No provider's key is among it: those come with the orders, each provider's
# to its own process.
_PASSED_ON = frozenset({"PATH", "TMPDIR", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR"})

QUIET: Mapping[str, str] = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # the price list of the package, not one fetched at each start
    "LITELLM_MODE": "PRODUCTION",  # no .env file of whatever folder
    "LITELLM_LOG": "ERROR",
    "LITELLM_TELEMETRY": "False",
    "HF_HUB_OFFLINE": "1",  # no tokenizers fetched to count tokens
    "MALLOC_ARENA_MAX": "2",  # address space is limited, and one arena a thread takes 64 MiB of it
}
"""Variables that keep the library from the network but for the providers."""


class BridgeProcess(ChildProcess):
    """A process that runs the library for one provider."""

    @classmethod
    async def start(cls, orders: Orders, listener: int) -> Self:
        """A process that will accept connections of the listening socket with the descriptor *listener*."""
        process = await asyncio.create_subprocess_exec(
            *(*PYTHON, "gateway.bridge.child", str(listener)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=child_environment(os.environ),
            cwd="/",
            pass_fds=[listener],
            start_new_session=True,
        )
        return await cls(process, _log).told(orders.to_json())

    async def wait_ready(self, timeout_seconds: float) -> None:
        """Return when requests are accepted; the error says why they never will be."""
        try:
            async with asyncio.timeout(timeout_seconds):
                failure = await self.failure()
        except TimeoutError as error:
            raise BridgeCrashedError(f"the library was not loaded within {timeout_seconds:g} s") from error
        if failure is not None:
            raise _error_of(*failure)

    async def crashed(self) -> BridgeCrashedError:
        """Wait until the process ends by itself, and say how."""
        code = await self.ended()
        return BridgeCrashedError(f"its process {how_it_ended(code)}")


def child_environment(source: Mapping[str, str]) -> dict[str, str]:
    """What a bridge's process gets of the environment *source*, before its orders add to it."""
    chosen = {name: value for name, value in source.items() if name in _PASSED_ON}
    return {**chosen, **QUIET, **module_path()}


def _error_of(code: int, reason: str) -> BridgeError:
    if code == ChildExit.LIBRARY_UNUSABLE:
        return BridgeUnusableError(reason)
    return BridgeCrashedError(f"its process {how_it_ended(code)} before it was ready")
