"""A local model that is there when it is needed: its process is started, watched, started again, and unloaded."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from pathlib import Path

from local_engine import probe
from local_engine.attached import gave_up, publish
from local_engine.errors import EngineCrashedError, EngineDownError, LocalEngineError
from local_engine.health import until_healthy, watch
from local_engine.launch import Launch, prepare, template_has_tools
from local_engine.memory import check_memory
from local_engine.occupancy import Occupancy
from local_engine.options import EngineConfig
from local_engine.pace import Pace
from local_engine.premises import Premises
from local_engine.probe import Address
from local_engine.room import Room
from local_engine.state import DOWN, EngineState, explain
from local_engine.supervisor import EngineProcess

_log = logging.getLogger(__name__)


class LocalEngine:
    """One model in a process of its own. All methods belong to the event loop that called `start`."""

    def __init__(self, config: EngineConfig, pace: Pace | None = None, room: Room | None = None) -> None:
        """*room* is shared by the engines of which only so many may be loaded."""
        self.config = config
        self.slots = config.slots
        self.restarts = 0
        """How often the process was started again after a failure."""
        self.loads = 0
        """How often the model was loaded."""
        self.ready_since = 0.0
        self.state = EngineState.STOPPED
        self.last_error = ""
        self.supports_tools: bool | None = None
        self.log_tail: list[str] = []
        """What the last process that ended had written on standard error, at most its last 40 lines."""
        self._pace = pace or Pace()
        self._room = room or Room()
        self._failures = 0
        self._told = ""
        self._changed = asyncio.Event()
        self._wanted = asyncio.Event()
        self._leaving = False
        self._occupancy = Occupancy()
        self._run: asyncio.Task[None] | None = None
        self._process: EngineProcess | None = None
        self._premises: Premises | None = None
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

    @property
    def last_used(self) -> float:
        return self._occupancy.last_used

    @property
    def _is_leaving(self) -> bool:
        return self.state is EngineState.UNLOADING

    async def start(self) -> None:
        """Begin to run and return at once. Where only so many models may be loaded, those begun first are."""
        if self._run is not None:
            return
        self._premises = Premises(self.config, self._occupancy, self.wake)
        self.address = self._premises.address
        self._set(EngineState.STARTING)
        if self._room.enter_if_free(self):
            self._wanted.set()
        self._run = asyncio.create_task(self._keep_running(), name=f"local engine {self.name}")

    async def stop(self) -> None:
        """End the process and return when it is gone."""
        run, self._run = self._run, None
        if run is None:
            return
        self._set(EngineState.STOPPING)
        run.cancel()
        await asyncio.wait([run])
        self._room.leave(self)
        self._set(EngineState.STOPPED)
        if self._premises is not None:
            self._premises.close()

    def wake(self) -> None:
        self._wanted.set()

    async def wait_ready(self, timeout_seconds: float) -> None:
        """Return when the model is loaded; `EngineDownError` when it cannot be for now."""
        try:
            async with asyncio.timeout(timeout_seconds):
                while self.state is not EngineState.READY:
                    if self.state in DOWN:
                        raise EngineDownError(explain(self))
                    await self._changed.wait()
        except TimeoutError as error:
            raise EngineDownError(explain(self)) from error

    async def claim(self, timeout_seconds: float) -> None:
        try:
            async with asyncio.timeout(timeout_seconds):
                while not await self._claimed():
                    await self._changed.wait()
        except TimeoutError as error:
            raise gave_up(self) from error

    def release(self) -> None:
        self._occupancy.release()

    def give_way(self, *, though_busy: bool) -> bool:
        if self.state is not EngineState.READY or not (self._occupancy.empty() or though_busy):
            return False
        self._leaving = True
        self._set(EngineState.UNLOADING)
        self._occupancy.freed.set()
        return True

    async def _claimed(self) -> bool:
        """Whether the engine is ready and held; False when it has to be tried again after a change of state."""
        if self._is_leaving:
            return False
        self._occupancy.claim()
        try:
            self._wanted.set()
            while self.state is not EngineState.READY:
                if self.state in DOWN:
                    raise EngineDownError(explain(self))
                if self._is_leaving:
                    self._occupancy.release()  # or it would wait for us
                    return False
                await self._changed.wait()
        except BaseException:
            self._occupancy.release()
            raise
        return True

    def _set(self, state: EngineState) -> None:
        self.state = state
        publish(self)
        self._changed.set()
        self._changed = asyncio.Event()

    async def _keep_running(self) -> None:
        self.supports_tools = await asyncio.to_thread(template_has_tools, self.config)
        if not self._wanted.is_set():
            self._set(EngineState.UNLOADED)
        while True:
            await self._until_asked()
            began = time.monotonic()
            try:
                # What is wrong with its files shows before another model has to leave.
                launch = await asyncio.to_thread(prepare, self.config, self.name, self.address)
                await self._room.enter(self)
                began = time.monotonic()
                await self._run_once(launch)
            except LocalEngineError as error:
                if time.monotonic() - began > self._pace.healthy_after_seconds:
                    self._failures = 0
                self._note_failure(error)
            except Exception as error:  # noqa: BLE001 - a background task's loop
                # Nobody awaits this task: whatever went wrong must show in the state, and must not end the watch.
                _log.exception("the supervisor of the local engine %s failed", self.name)
                self._note_failure(EngineCrashedError(repr(error)))
            else:
                self._failures = 0
                self._wanted.clear()
                self._set(EngineState.UNLOADED)
                continue
            finally:
                self._leaving = False
                self._occupancy.reopen()
                self._room.leave(self)
            if not self._occupancy.claims:
                self._wanted.clear()
            await asyncio.sleep(self._pace.backoff_seconds(self._failures))
            self.restarts += 1

    async def _until_asked(self) -> None:
        """Return when the model is to be loaded. After a failure that is tried unasked, if none has to leave for it."""
        while not self._wanted.is_set() and not (self._failures and self._room.enter_if_free(self)):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._pace.backoff_seconds(self._failures) if self._failures else None):
                    await self._wanted.wait()

    async def _run_once(self, launch: Launch) -> None:
        """Load the model, and stay until it is to be unloaded, or has failed, which a `LocalEngineError` tells."""
        if self.state is EngineState.UNLOADED:
            self._set(EngineState.LOADING)
        if launch.load is not None:
            await asyncio.to_thread(check_memory, launch.load, self.config.memory_check, self.name)
        process = self._process = await EngineProcess.start(launch)
        try:
            await process.wait_listening(self.config.start_timeout_seconds)
            await process.while_alive(self._prove(launch))
            self._told = ""
            self.loads += 1
            self._occupancy.touch()
            self.ready_since = time.monotonic()
            self._set(EngineState.READY)
            await process.while_alive(watch(self.address, self._pace), self._until_unloaded())
            _log.info("unloading the local model %s", self.name)
        finally:
            self._process = None
            await process.stop()
            self.log_tail = process.log_tail

    async def _prove(self, launch: Launch) -> None:
        """Let the engine do a little of its work, and ask what its model can do."""
        if self.config.command:
            # A child of our own has told already that it listens.
            await until_healthy(self.address, self._pace, self.config.start_timeout_seconds)
        await probe.prove(self.address, launch.purpose)
        self.supports_tools = await probe.supports_tools(self.address)

    async def _until_unloaded(self) -> None:
        """Return when the model can be unloaded: nobody uses it then, and nobody begins to."""
        while True:
            if (self._leaving or self._has_no_use()) and self._occupancy.empty():
                if self.state is not EngineState.UNLOADING:
                    self._set(EngineState.UNLOADING)
                return
            self._occupancy.freed.clear()
            pause = 0.05 if self._leaving else self._pace.look_at_use_seconds
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._occupancy.freed.wait()

    def _has_no_use(self) -> bool:
        longest = self.config.idle_unload_seconds
        return self._room.too_many(self) or (longest is not None and self._occupancy.idle_seconds >= longest)

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
