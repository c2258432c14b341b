"""One run of a bridge's process: start it, hear that it answers, keep the end of its log, stop it for certain."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
from collections import deque
from collections.abc import Mapping
from pathlib import Path

from gateway.bridge.errors import BridgeCrashedError, BridgeError, BridgeUnusableError
from gateway.bridge.orders import ChildExit, Orders

_log = logging.getLogger("gateway.bridge.child")
_TAIL_LINES = 40
_STOP_GRACE_SECONDS = 1.0

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


class BridgeProcess:
    """A process that was started; `stop` must be called, whatever happened to it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self._log_reader = asyncio.create_task(self._read_log())
        self._exited: asyncio.Task[int] = asyncio.create_task(process.wait())

    @classmethod
    async def start(cls, orders: Orders, listener: int) -> BridgeProcess:
        """A process that will accept connections of the listening socket with the descriptor *listener*."""
        process = await asyncio.create_subprocess_exec(
            # -P: the directory we happen to be in is no place to look for modules.
            *(sys.executable, "-P", "-m", "gateway.bridge.child", str(listener)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=child_environment(os.environ),
            cwd="/",
            pass_fds=[listener],
            start_new_session=True,
        )
        started = cls(process)
        assert process.stdin is not None
        try:
            with contextlib.suppress(ConnectionError):  # it died at once: `wait_ready` tells why
                process.stdin.write(orders.to_json().encode() + b"\n")
                await process.stdin.drain()
        except asyncio.CancelledError:
            await started.stop()
            raise
        return started

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def log_tail(self) -> list[str]:
        """The last lines the process wrote on standard error, oldest first."""
        return list(self._tail)

    async def wait_ready(self, timeout_seconds: float) -> None:
        """Return when requests are accepted; the error says why they never will be."""
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(timeout_seconds):
                line = await self._process.stdout.readline()
                if not line or "failed" in (report := json.loads(line)):
                    code = await self._ended()
                    raise _failure(code, report["failed"] if line else "")
        except TimeoutError as error:
            raise BridgeCrashedError(f"the library was not loaded within {timeout_seconds:g} s") from error

    async def crashed(self) -> BridgeCrashedError:
        """Wait until the process ends by itself, and say how."""
        code = await self._ended()
        return BridgeCrashedError(f"its process {_how_it_ended(code)}")

    async def stop(self) -> None:
        """End the process, politely at first, and return when it is gone. May be called again."""
        try:
            if not self._exited.done():
                with contextlib.suppress(ProcessLookupError):
                    self._process.terminate()
                await asyncio.wait({self._exited}, timeout=_STOP_GRACE_SECONDS)
        finally:
            # Also when we are cancelled while being polite. The group is the child's own: it leads a new session.
            if not self._exited.done():
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.pid, signal.SIGKILL)
        await self._ended()

    async def _ended(self) -> int:
        """The exit code, once there is one. Cancelling a caller leaves the watch on the process alone."""
        await asyncio.wait({self._exited, self._log_reader})
        return self._exited.result()

    async def _read_log(self) -> None:
        assert self._process.stderr is not None
        rest = b""
        while chunk := await self._process.stderr.read(65536):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self._tail.append(line.decode(errors="replace").rstrip())
                _log.debug("%s", self._tail[-1])
            rest = rest[-4096:]
        if rest:
            self._tail.append(rest.decode(errors="replace"))


def child_environment(source: Mapping[str, str]) -> dict[str, str]:
    """What a bridge's process gets of the environment *source*, before its orders add to it."""
    chosen = {name: value for name, value in source.items() if name in _PASSED_ON}
    # The child must find the modules this process has found, installed or not.
    modules = os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)
    return {**chosen, **QUIET, "PYTHONPATH": modules}


def _failure(code: int, reason: str) -> BridgeError:
    if code == ChildExit.LIBRARY_UNUSABLE:
        return BridgeUnusableError(reason)
    return BridgeCrashedError(f"its process {_how_it_ended(code)} before it was ready")


def _how_it_ended(code: int) -> str:
    if code >= 0:
        return f"exited with code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"was killed by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")
