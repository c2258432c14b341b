"""One run of a child process: hear what it reports, keep the end of its log, stop it for certain."""

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
from typing import Any, Final, Self

_TAIL_LINES: Final = 40
_STOP_GRACE_SECONDS: Final = 1.0

PYTHON: Final = (sys.executable, "-P", "-m")
"""Runs a module. -P: the directory we happen to be in is no place to look for modules."""


class ChildProcess:
    """A process that was started; `stop` must be called, whatever happened to it.

    It leads a session of its own, and its standard streams are pipes.
    """

    def __init__(self, process: asyncio.subprocess.Process, log: logging.Logger) -> None:
        self._process = process
        self._log = log
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self._log_reader = asyncio.create_task(self._read_log())
        self.exited: asyncio.Task[int] = asyncio.create_task(process.wait())

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def log_tail(self) -> list[str]:
        """The last lines the process wrote on standard error, oldest first."""
        return list(self._tail)

    async def told(self, line: str) -> Self:
        """This process, once *line* is on its standard input. That it died at once shows in its report."""
        assert self._process.stdin is not None
        try:
            with contextlib.suppress(ConnectionError):
                self._process.stdin.write(line.encode() + b"\n")
                await self._process.stdin.drain()
        except asyncio.CancelledError:
            await self.stop()
            raise
        return self

    async def failure(self) -> tuple[int, str] | None:
        """Wait for the first report: None, or the exit code and the reason of a process that will not do its work."""
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        report: Mapping[str, Any] = json.loads(line) if line else {"failed": ""}
        return (await self.ended(), report["failed"]) if "failed" in report else None

    async def ended(self) -> int:
        """The exit code, once the process is gone and its log is read. Whoever is cancelled here leaves both going."""
        await asyncio.wait({self.exited, self._log_reader})
        return self.exited.result()

    async def stop(self) -> None:
        """End the process, politely at first, and return when it is gone. May be called again."""
        try:
            if not self.exited.done():
                with contextlib.suppress(ProcessLookupError):
                    self._process.terminate()
                await asyncio.wait({self.exited}, timeout=_STOP_GRACE_SECONDS)
        finally:
            # Also when we are cancelled while being polite. The group is the child's own: it leads a new session.
            self._kill_group()
            await self.ended()

    def _kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self.exited.done():
                return
            if sys.platform == "win32":
                self._process.kill()
            else:
                os.killpg(self.pid, signal.SIGKILL)

    async def _read_log(self) -> None:
        assert self._process.stderr is not None
        rest = b""
        while chunk := await self._process.stderr.read(65536):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self._tail.append(line.decode(errors="replace").rstrip())
                self._log.debug("%s", self._tail[-1])
            rest = rest[-4096:]
        if rest:
            self._tail.append(rest.decode(errors="replace"))


def module_path() -> dict[str, str]:
    """The variable by which a child finds the modules that this process has found, installed or not."""
    return {"PYTHONPATH": os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)}


def how_it_ended(code: int) -> str:
    """The exit *code* in words: "exited with code 1", "was killed by SIGTERM"."""
    if code >= 0:
        return f"exited with code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    # A process the kernel kills for want of memory leaves no other trace.
    return f"was killed by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")
