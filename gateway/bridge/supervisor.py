"""A bridge that keeps being there: its socket listens at once, its process starts with the first request."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass

from gateway.bridge.errors import BridgeCrashedError, BridgeError
from gateway.bridge.orders import Orders
from gateway.bridge.process import BridgeProcess
from gateway.bridge.refusing import refuse_connections, somebody_waits
from gateway.bridge.state import BridgeState, publish
from local_engine.pace import RestartPace
from local_engine.rundir import RunDirectory

_log = logging.getLogger(__name__)
_BACKLOG = 1024


@dataclass(frozen=True, slots=True)
class Pace(RestartPace):
    """The times a supervisor goes by."""

    start_timeout_seconds: float = 120.0


class Bridge:
    """One provider of ``type: litellm_bridge``. All methods belong to the event loop that called `start`.

    The gateway's processes reach it by `socket_path`, which this object listens on for its whole life. Requests that
    come while no process runs wait in the socket's queue until one does; when waiting is no use, they get a 503.
    """

    def __init__(self, name: str, make_orders: Callable[[], Orders], pace: Pace | None = None) -> None:
        self.name = name
        self.socket_path = ""
        self._state = BridgeState.STOPPED
        self.restarts = 0
        """How often a process was started after the first."""
        self.last_error = ""
        self.log_tail: list[str] = []
        """What the last process that ended had written on standard error, at most its last 40 lines."""
        self._make_orders = make_orders
        self._pace = pace or Pace()
        self._failures = 0
        self._directory: RunDirectory | None = None
        self._listener: socket.socket | None = None
        self._process: BridgeProcess | None = None
        self._run: asyncio.Task[None] | None = None

    @property
    def state(self) -> BridgeState:
        """How it is; `state_at` tells the same to other processes."""
        return self._state

    @state.setter
    def state(self, state: BridgeState) -> None:
        self._state = state
        publish(self.socket_path, state)

    @property
    def pid(self) -> int | None:
        """The running process, if there is one."""
        return self._process.pid if self._process is not None else None

    async def start(self) -> None:
        """Listen, and return at once; nothing is run before the first request."""
        if self._run is not None:
            return
        self._directory = RunDirectory()
        self.socket_path = self._directory.socket_path("bridge")
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.setblocking(False)
        self._listener.bind(self.socket_path)
        self._listener.listen(_BACKLOG)
        self.state = BridgeState.IDLE
        self._run = asyncio.create_task(self._keep(self._listener), name=f"bridge {self.name}")

    async def stop(self) -> None:
        """End the process and return when it is gone."""
        run, self._run = self._run, None
        if run is None:
            return
        run.cancel()
        await asyncio.wait([run])
        self.state = BridgeState.STOPPED
        if self._listener is not None:
            self._listener.close()
        if self._directory is not None:
            self._directory.remove()

    async def _keep(self, listener: socket.socket) -> None:
        started = False
        while True:
            await somebody_waits(listener)
            self.restarts += started
            started = True
            began = time.monotonic()
            try:
                await self._run_once(listener.fileno())
            except BridgeError as error:
                if time.monotonic() - began > self._pace.healthy_after_seconds:
                    self._failures = 0
                self._note_failure(error)
            except Exception as error:  # noqa: BLE001 - a background task's loop
                # Nobody awaits this task: whatever went wrong must show in the state, and must not end the watch.
                _log.exception("the supervisor of the bridge %s failed", self.name)
                self._note_failure(BridgeCrashedError(repr(error)))
            if self.state is BridgeState.FAILED:
                await refuse_connections(listener, self.name, self._pace.backoff_seconds(self._failures))
            else:
                await asyncio.sleep(self._pace.backoff_seconds(self._failures))
            self.state = BridgeState.IDLE

    async def _run_once(self, listener: int) -> None:
        """Start the process and stay until it has failed, which is told by a `BridgeError`."""
        self.state = BridgeState.STARTING
        process = self._process = await BridgeProcess.start(self._make_orders(), listener)
        try:
            await process.wait_ready(self._pace.start_timeout_seconds)
            self.state = BridgeState.READY
            _log.info("the bridge %s is ready", self.name)
            raise await process.crashed()
        finally:
            self._process = None
            await process.stop()
            self.log_tail = process.log_tail

    def _note_failure(self, error: BridgeError) -> None:
        self._failures += 1
        self.last_error = str(error)
        tail = "".join(f"\n  {line}" for line in self.log_tail[-5:])
        _log.warning("the bridge %s failed: %s%s", self.name, error, tail)
        hopeless = error.permanent or self._failures >= self._pace.failures_until_failed
        self.state = BridgeState.FAILED if hopeless else BridgeState.RESTARTING
