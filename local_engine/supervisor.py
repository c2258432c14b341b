"""One run of the engine's process: start it, hear when it listens, keep the end of its log, stop it for certain."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
from collections import deque
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any

from local_engine.errors import (
    CommandMissingError,
    EngineCrashedError,
    LibraryMissingError,
    LocalEngineError,
    ModelUnreadableError,
)
from local_engine.launch import Launch
from local_engine.options import ChildExit

_log = logging.getLogger("local_engine.child")
_TAIL_LINES = 40
_STOP_GRACE_SECONDS = 1.0

# The engine needs no provider keys, so it is given none: of the environment it gets what loaders and runtimes read.
_PASSED_ON = frozenset({"PATH", "HOME", "USERPROFILE", "SYSTEMROOT", "TMPDIR", "TEMP", "TMP", "LANG", "TZ"})
_PASSED_ON_PREFIXES = ("LC_", "LD_", "DYLD_", "OMP_", "GOMP_", "GGML_", "CUDA_", "NVIDIA_", "HIP_", "ROCR_", "VK_")

# -P: the directory we happen to be in is no place to look for modules.
_COMMAND = (sys.executable, "-P", "-m")


class EngineProcess:
    """A child that was started; `stop` must be called, whatever happened to it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self._log_reader = asyncio.create_task(self._read_log())
        self.exited: asyncio.Task[int] = asyncio.create_task(process.wait())

    @classmethod
    async def start(cls, launch: Launch) -> EngineProcess:
        process = await asyncio.create_subprocess_exec(
            *_COMMAND,
            launch.module,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=child_environment(os.environ),
            start_new_session=True,
        )
        started = cls(process)
        assert process.stdin is not None
        process.stdin.write(launch.first_line.encode() + b"\n")
        try:
            with contextlib.suppress(ConnectionError):  # it died at once: `wait_listening` tells why
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

    async def wait_listening(self, timeout_seconds: float) -> None:
        """Return when the process has reported: a child that it listens, a keeper that its command runs.

        The error says why it never will.
        """
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(timeout_seconds):
                line = await self._process.stdout.readline()
                if not line or "failed" in (report := json.loads(line)):
                    code = await self._end()
                    raise self._failure(code, report["failed"] if line else "")
        except TimeoutError as error:
            raise EngineCrashedError(f"the model was not loaded within {timeout_seconds:g} s") from error

    async def while_alive(self, *works: Coroutine[Any, Any, None]) -> None:
        """Run *works* until one is done, but raise `EngineCrashedError` as soon as the process ends."""
        tasks = [asyncio.create_task(work) for work in works]
        try:
            await asyncio.wait([*tasks, self.exited], return_when=asyncio.FIRST_COMPLETED)
            done = [task for task in tasks if task.done()]
            if not done:
                raise await self.crashed()
            for task in done:
                await task
        finally:
            for task in tasks:
                task.cancel()

    async def crashed(self) -> EngineCrashedError:
        """Wait until the process ends by itself, and say how."""
        code = await self._end()
        return EngineCrashedError(f"the engine's process {_how_it_ended(code)}")

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
        await self._end()

    async def _end(self) -> int:
        """The exit code, once the process is gone and its log is read. Whoever is cancelled here leaves both going."""
        await asyncio.wait({self.exited, self._log_reader})
        return self.exited.result()

    def _kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self.exited.done():
                return
            if sys.platform == "win32":
                self._process.kill()
            else:
                os.killpg(self.pid, signal.SIGKILL)

    def _failure(self, code: int, reason: str) -> LocalEngineError:
        if code == ChildExit.LIBRARY_MISSING:
            return LibraryMissingError(reason)
        if code == ChildExit.MODEL_UNREADABLE:
            return ModelUnreadableError(reason)
        if code == ChildExit.COMMAND_MISSING:
            return CommandMissingError(reason)
        return EngineCrashedError(f"the engine's process {_how_it_ended(code)} before it was ready")

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


async def library_version() -> str:
    """The version of the native library, loaded in a process of its own; `LibraryMissingError` says what is missing."""
    process = await asyncio.create_subprocess_exec(
        *_COMMAND,
        "local_engine.child",
        "--check",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=child_environment(os.environ),
    )
    answer, _ = await process.communicate()
    try:
        report = json.loads(answer)
    except ValueError as error:
        raise LibraryMissingError(f"loading xllamacpp {_how_it_ended(process.returncode or 0)}") from error
    if "failed" in report:
        raise LibraryMissingError(report["failed"])
    return str(report["version"])


def child_environment(source: Mapping[str, str]) -> dict[str, str]:
    """What the engine's process gets of the environment *source*."""
    chosen = {
        name: value
        for name, value in source.items()
        if name.upper() in _PASSED_ON or name.upper().startswith(_PASSED_ON_PREFIXES)
    }
    # The child must find the modules this process has found, installed or not.
    return chosen | {"PYTHONPATH": os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)}


def _how_it_ended(code: int) -> str:
    if code >= 0:
        return f"exited with code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    # A process the kernel kills for want of memory leaves no other trace.
    return f"was killed by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")
