"""uvicorn's server with our protocol, our drain, and signals that don't come back after it."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any

import uvicorn

from gateway import interruption
from gateway.data_plane.limits import WireLimits
from gateway.data_plane.uvicorn_protocol import DataPlaneProtocol
from gateway.reload.terminal import RELOAD_SIGNAL, Terminal
from gateway.served import ServedApplication

if TYPE_CHECKING:
    from gateway.settings import Settings

_log = logging.getLogger(__name__)

FORCED_EXIT = 130
"""The exit code after a second Ctrl-C: what shells expect of an interrupted program."""

_END_SECONDS = 5.0
"""How long requests that were ended may take to say so."""

_BACKLOG = 2048

_TICK_SECONDS = 1.0
"""How old the date may be that answers carry."""


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """How one worker serves."""

    limits: WireLimits
    drain_seconds: float = 120.0

    @classmethod
    def of(cls, settings: Settings) -> ServerOptions:
        """What *settings* say about it."""
        return cls(WireLimits(max_body_bytes=settings.server.max_body), settings.server.drain_timeout)


class HttpServer(uvicorn.Server):
    """Serves one application until a signal has come and the drain is over."""

    def __init__(self, options: ServerOptions) -> None:
        # The application is known only when it has been created; `serve_application` completes the configuration.
        super().__init__(uvicorn.Config(app=_nothing, log_config=None))
        self._options = options
        self._application: ServedApplication | None = None
        self._on_listening: Callable[[], Any] = lambda: None
        self._terminal = Terminal()
        self._loop: asyncio.AbstractEventLoop = asyncio.get_running_loop()
        self._reload_asked = False
        self._stopping = asyncio.Event()
        self.stopped_by = 0
        """The first signal that told it to stop."""
        self._beside: set[asyncio.Task[Any]] = set()

    @property
    def exit_code(self) -> int:
        return FORCED_EXIT if self.force_exit else 0

    async def serve_application(
        self, application: ServedApplication, sock: socket.socket, on_listening: Callable[[], Any]
    ) -> None:
        """Answer requests for *application* until a signal has come and the drain is over."""
        self._application = application
        self._on_listening = on_listening
        protocol = functools.partial(
            DataPlaneProtocol,
            plane=application.plane,
            limits=self._options.limits,
            deadlines=application.services.deadlines,
        )

        async def fallback(scope: Any, receive: Any, send: Any) -> None:
            await application.asgi(scope, receive, send)

        self.config = uvicorn.Config(
            fallback,
            http=protocol,  # type: ignore[arg-type]  # any factory of protocols will do
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            backlog=_BACKLOG,
        )
        logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
        await super().serve([sock])

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._reload_asked and self._application is not None:
            self._application.reload_soon(RELOAD_SIGNAL)
        _leave_modules_alone()
        outcome = self._on_listening()
        if asyncio.iscoroutine(outcome):
            self._run_beside(outcome)

    async def main_loop(self) -> None:
        """Wait to be told to stop. uvicorn's own looks ten times a second whether it was, in an idle gateway too."""
        while not await self.on_tick(0):  # which renews the date
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), _TICK_SECONDS)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more, let running requests finish for as long as the drain may last, then end them."""
        application = self._application
        assert application is not None
        # Readiness fails from here on, and every answer closes its connection.
        application.services.draining = True
        for server in self.servers:
            server.close()
        for sock in sockets or []:
            sock.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        if not await self._quiet_within(self._options.drain_seconds) and not self.force_exit:
            _log.warning("ending %d requests that outlasted the drain", len(self.server_state.tasks))
            application.end_remaining()
            await self._quiet_within(_END_SECONDS)
        for task in (*self.server_state.tasks, *self._beside):
            task.cancel()
        await asyncio.sleep(0)
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        if self.server_state.tasks:
            await asyncio.wait(set(self.server_state.tasks), timeout=_END_SECONDS)

    def capture_signals(self) -> contextlib.AbstractContextManager[None]:  # type: ignore[override]  # nothing to capture: see handling_signals
        return contextlib.nullcontext()

    @contextlib.contextmanager
    def handling_signals(self) -> Generator[None, None, None]:
        """Stop at the first signal, at once at the second Ctrl-C; reload at SIGHUP.

        Unlike uvicorn's, no signal is raised again after.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        with interruption.handled_by(self.handle_exit), self._handling_hangup():
            yield

    @contextlib.contextmanager
    def _handling_hangup(self) -> Generator[None, None, None]:
        before = signal.signal(signal.SIGHUP, self._handle_hangup) if sys.platform != "win32" else None
        try:
            yield
        finally:
            if sys.platform != "win32":
                signal.signal(signal.SIGHUP, before)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        self.stopped_by = self.stopped_by or sig
        self.should_exit = True
        # Handlers run between any two instructions: what the loop is at must not see half of it.
        self._loop.call_soon_threadsafe(self._stopping.set)

    def _handle_hangup(self, sig: int, frame: FrameType | None) -> None:
        if self._terminal.is_gone:
            self.handle_exit(sig, frame)
        elif self.started and self._application is not None:
            self._loop.call_soon_threadsafe(self._application.reload_soon, RELOAD_SIGNAL)
        else:
            self._reload_asked = True

    async def _quiet_within(self, seconds: float) -> bool:
        """Whether every connection has ended in time; false as well when told to stop at once."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while self.server_state.connections or self.server_state.tasks:
            if self.force_exit or loop.time() >= until:
                return False
            await asyncio.sleep(0.05)
        return True

    def _run_beside(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._beside.add(task)
        task.add_done_callback(self._beside_ended)

    def _beside_ended(self, task: asyncio.Task[Any]) -> None:
        self._beside.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("something beside the server failed", exc_info=error)


def _leave_modules_alone() -> None:
    # What is loaded by now stays. The garbage collector took a twelfth of the time of a busy gateway, nearly all of it
    # for walking through modules; requests themselves leave few cycles behind.
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


async def _nothing(scope: Any, receive: Any, send: Any) -> None:
    """Stands in until there is an application."""
