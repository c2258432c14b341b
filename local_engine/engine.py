"""A local model that keeps running: starts its process, watches it, and starts it again when it fails."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local_engine import probe
from local_engine.attached import publish
from local_engine.errors import EngineCrashedError, EngineDownError, LocalEngineError
from local_engine.options import ChildOptions, EngineConfig, default_threads
from local_engine.probe import Address
from local_engine.registry import default_store, locate
from local_engine.rundir import RunDirectory
from local_engine.state import DOWN, EngineState, explain
from local_engine.supervisor import EngineProcess
from local_engine.weights import check_weights

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pace:
    """The times a supervisor goes by."""

    first_backoff_seconds: float = 0.5
    longest_backoff_seconds: float = 30.0
    healthy_after_seconds: float = 60.0
    """Having run this long makes the next failure count as the first."""
    failures_until_failed: int = 3
    health_interval_seconds: float = 5.0
    health_timeout_seconds: float = 10.0
    unanswered_until_hung: int = 2


class LocalEngine:
    """One model in a process of its own. All methods belong to the event loop that called `start`."""

    def __init__(self, config: EngineConfig, pace: Pace | None = None) -> None:
        self.config = config
        self.slots = config.slots
        self.restarts = 0
        """How often the process was started again."""
        self.state = EngineState.STOPPED
        self.last_error = ""
        self.supports_tools: bool | None = None
        self.log_tail: list[str] = []
        """What the last process that ended had written on standard error, at most its last 40 lines."""
        self._pace = pace or Pace()
        self._failures = 0
        self._told = ""
        self._changed = asyncio.Event()
        self._run: asyncio.Task[None] | None = None
        self._process: EngineProcess | None = None
        self._directory: RunDirectory | None = None
        self.address = Address()
        """Where it listens; the same for its whole life, from `start` on."""

    @property
    def name(self) -> str:
        return self.config.name or Path(self.config.model).name.removesuffix(".gguf")

    @property
    def socket_path(self) -> str | None:
        return self.address.socket_path

    @property
    def pid(self) -> int | None:
        """The running process, if there is one."""
        return self._process.pid if self._process is not None else None

    async def start(self) -> None:
        """Begin to run and return at once; `wait_ready` tells how it went."""
        if self._run is not None:
            return
        if self.config.loopback_port:
            self.address = Address(port=_free_port(), api_key=os.urandom(16).hex())
        else:
            self._directory = RunDirectory()
            self.address = Address(socket_path=self._directory.socket_path("engine"))
        self._set(EngineState.STARTING)
        self._run = asyncio.create_task(self._keep_running(), name=f"local engine {self.name}")

    async def stop(self) -> None:
        """End the process and return when it is gone."""
        run, self._run = self._run, None
        if run is None:
            return
        self._set(EngineState.STOPPING)
        run.cancel()
        await asyncio.wait([run])
        self._set(EngineState.STOPPED)
        if self._directory is not None:
            self._directory.remove()

    async def wait_ready(self, timeout_seconds: float) -> None:
        """Return when requests can be sent; `EngineDownError` when they cannot for now."""
        try:
            async with asyncio.timeout(timeout_seconds):
                while self.state is not EngineState.READY:
                    if self.state in DOWN:
                        raise EngineDownError(explain(self))
                    await self._changed.wait()
        except TimeoutError as error:
            raise EngineDownError(explain(self)) from error

    def _set(self, state: EngineState) -> None:
        self.state = state
        publish(self)
        self._changed.set()
        self._changed = asyncio.Event()

    async def _keep_running(self) -> None:
        while True:
            began = time.monotonic()
            try:
                await self._run_once()
            except LocalEngineError as error:
                if time.monotonic() - began > self._pace.healthy_after_seconds:
                    self._failures = 0
                self._note_failure(error)
            except Exception as error:  # noqa: BLE001 - a background task's loop
                # Nobody awaits this task: whatever went wrong must show in the state, and must not end the watch.
                _log.exception("the supervisor of the local engine %s failed", self.name)
                self._note_failure(EngineCrashedError(repr(error)))
            await asyncio.sleep(self._backoff_seconds())
            self.restarts += 1

    async def _run_once(self) -> None:
        """Start the process and stay until it has failed, which is told by a `LocalEngineError`."""
        options = await asyncio.to_thread(self._prepare)
        process = self._process = await EngineProcess.start(options)
        try:
            await process.wait_listening(self.config.start_timeout_seconds)
            await self._while_alive(process, self._prove())
            self._told = ""
            self._set(EngineState.READY)
            await self._while_alive(process, self._watch())
        finally:
            self._process = None
            await process.stop()
            self.log_tail = process.log_tail

    async def _prove(self) -> None:
        """Let the engine do a little of its work, and ask what its model can do."""
        await probe.generate_one_token(self.address, embeddings=self.config.embeddings)
        self.supports_tools = await probe.supports_tools(self.address)

    def _prepare(self) -> ChildOptions:
        path, known = locate(self.config.model, self.config.store or default_store())
        check_weights(path, known)
        return ChildOptions(
            model_path=str(path),
            name=self.name,
            context=self.config.context,
            slots=self.config.slots,
            threads=self.config.threads or default_threads(),
            cache_ram_mib=self.config.cache_ram_mib,
            embeddings=self.config.embeddings,
            host=self.address.socket_path or "127.0.0.1",
            port=self.address.port,
            api_key=self.address.api_key,
            parent_pid=os.getpid(),
        )

    async def _while_alive(self, process: EngineProcess, work: Coroutine[Any, Any, None]) -> None:
        """Do *work*, but raise `EngineCrashedError` as soon as the process ends."""
        task = asyncio.create_task(work)
        try:
            await asyncio.wait([task, process.exited], return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise await process.crashed()
            await task
        finally:
            task.cancel()

    async def _watch(self) -> None:
        """Raise when the process lives but does not answer any more."""
        unanswered = 0
        while unanswered < self._pace.unanswered_until_hung:
            await asyncio.sleep(self._pace.health_interval_seconds)
            healthy = await probe.is_healthy(self.address, self._pace.health_timeout_seconds)
            unanswered = 0 if healthy else unanswered + 1
        raise EngineCrashedError("the engine's process hung and was ended")

    def _note_failure(self, error: LocalEngineError) -> None:
        self._failures += 1
        self.last_error = str(error)
        # A model that is missing stays so through any number of attempts: saying it once is enough.
        if self.last_error != self._told:
            self._told = self.last_error
            tail = "".join(f"\n  {line}" for line in self.log_tail[-5:])
            _log.warning("the local engine %s failed: %s%s", self.name, error, tail)
        hopeless = error.permanent or self._failures >= self._pace.failures_until_failed
        self._set(EngineState.FAILED if hopeless else EngineState.RESTARTING)

    def _backoff_seconds(self) -> float:
        doubled = self._pace.first_backoff_seconds * 2.0 ** min(self._failures - 1, 16)
        return min(doubled, self._pace.longest_backoff_seconds)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
