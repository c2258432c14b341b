"""One run of the engine's process: start it, hear when it listens, and be told when it ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
from collections.abc import Coroutine, Mapping
from typing import Any, Self

from local_engine.child_process import PYTHON, ChildProcess, how_it_ended, module_path
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

# The engine needs no provider keys, so it is given none: of the environment it gets what loaders and runtimes read.
_PASSED_ON = frozenset({"PATH", "HOME", "USERPROFILE", "SYSTEMROOT", "TMPDIR", "TEMP", "TMP", "LANG", "TZ"})
_PASSED_ON_PREFIXES = ("LC_", "LD_", "DYLD_", "OMP_", "GOMP_", "GGML_", "CUDA_", "NVIDIA_", "HIP_", "ROCR_", "VK_")


class EngineProcess(ChildProcess):
    """A process that runs a model."""

    @classmethod
    async def start(cls, launch: Launch) -> Self:
        process = await asyncio.create_subprocess_exec(
            *PYTHON,
            launch.module,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=child_environment(os.environ),
            start_new_session=True,
        )
        return await cls(process, _log).told(launch.first_line)

    async def wait_listening(self, timeout_seconds: float) -> None:
        """Return when the process has reported: a child that it listens, a keeper that its command runs.

        The error says why it never will.
        """
        try:
            async with asyncio.timeout(timeout_seconds):
                failure = await self.failure()
        except TimeoutError as error:
            raise EngineCrashedError(f"the model was not loaded within {timeout_seconds:g} s") from error
        if failure is not None:
            raise _error_of(*failure)

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
        code = await self.ended()
        return EngineCrashedError(f"the engine's process {how_it_ended(code)}")


def _error_of(code: int, reason: str) -> LocalEngineError:
    if code == ChildExit.LIBRARY_MISSING:
        return LibraryMissingError(reason)
    if code == ChildExit.MODEL_UNREADABLE:
        return ModelUnreadableError(reason)
    if code == ChildExit.COMMAND_MISSING:
        return CommandMissingError(reason)
    return EngineCrashedError(f"the engine's process {how_it_ended(code)} before it was ready")


async def library_version() -> str:
    """The version of the native library, loaded in a process of its own; `LibraryMissingError` says what is missing."""
    process = await asyncio.create_subprocess_exec(
        *PYTHON,
        "local_engine.child",
        "--check",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=child_environment(os.environ),
    )
    try:
        answer, _ = await process.communicate()
    except asyncio.CancelledError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        raise
    try:
        report = json.loads(answer)
    except ValueError as error:
        raise LibraryMissingError(f"loading xllamacpp {how_it_ended(process.returncode or 0)}") from error
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
    return chosen | module_path()
