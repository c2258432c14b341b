"""The parent of several workers: it owns the socket and the local engines, and keeps the workers running."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gateway import interruption
from gateway.http_server import FORCED_EXIT
from gateway.owned_parts import OwnedParts
from gateway.reload.fleet import Fleet, Worker
from gateway.reload.orders import Ask, Report, Tell, from_line
from gateway.reload.reloader import Reloader
from gateway.reload.source import Source
from gateway.reload.terminal import RELOAD_SIGNAL, Terminal
from gateway.settings import Settings
from gateway.telemetry.snapshots import RUNTIME_DIR_VARIABLE
from gateway.worker import READY

_log = logging.getLogger(__name__)

_GRACE_SECONDS = 10.0
"""What a worker gets beyond the drain to end its last requests and write what is to be written."""

_FIRST_DELAY_SECONDS = 0.5
_LONGEST_DELAY_SECONDS = 30.0
_PROVEN_SECONDS = 60.0
"""A worker that lived this long has not died of its start."""


async def supervise(
    settings: Settings,
    sock: socket.socket,
    on_listening: Callable[[], Any] = lambda: None,
    *,
    source: Source | None = None,
    watch: bool = False,
) -> int:
    """Run ``settings.server.workers`` workers on *sock* until a signal ends them, and return the exit code.

    A worker that dies is replaced; one that cannot even start ends them all, with its own exit code. When this process
    is killed, the workers end too. *on_listening* is called, or run, when all of them accept connections. *source* is
    read again at a reload, and with *watch* at every change.
    """
    async with contextlib.AsyncExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="gateway-", ignore_cleanup_errors=True))
        parts = OwnedParts()
        stack.push_async_callback(parts.aclose)
        parts.adopt(await parts.prepare(settings))
        fleet = Fleet(settings, parts)
        stack.push_async_callback(fleet.aclose)
        source = source or Source(Path(settings.source) if settings.source else None, os.environ)
        reloader = Reloader(source, fleet)
        stack.push_async_callback(reloader.aclose)
        if watch:
            reloader.start_watching()
        return await _Workers(settings, sock, directory, fleet, reloader).run(on_listening)


class _Workers:
    def __init__(
        self, settings: Settings, sock: socket.socket, directory: str, fleet: Fleet, reloader: Reloader
    ) -> None:
        self._count = settings.server.workers
        self._drain_seconds = settings.server.drain_timeout
        self._sock = sock
        self._environ = {**os.environ, RUNTIME_DIR_VARIABLE: directory}
        self._fleet = fleet
        self._reloader = reloader
        self._terminal = Terminal()
        self._answers: set[asyncio.Task[None]] = set()
        self._running: dict[int, asyncio.subprocess.Process] = {}
        self._ready = 0
        self._all_ready = asyncio.Event()
        self._stopping = asyncio.Event()
        self._forced = False
        self._stopped_by = 0
        self._exit_code = 0

    async def run(self, on_listening: Callable[[], Any]) -> int:
        loop = asyncio.get_running_loop()
        signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        for number in signals:
            loop.add_signal_handler(number, self._on_signal, number)
        keepers = [asyncio.ensure_future(self._keep(slot)) for slot in range(self._count)]
        beside = asyncio.ensure_future(self._announce(on_listening))
        try:
            await self._stopping.wait()
            # Accepting ends in the workers; with this last descriptor gone, new clients are refused by the system.
            self._sock.close()
            _, late = await asyncio.wait(keepers, timeout=self._drain_seconds + _GRACE_SECONDS)
            if late:
                self._send(signal.SIGKILL)
            await asyncio.gather(*keepers)
        finally:
            self._send(signal.SIGKILL)
            for task in (*keepers, beside, *self._answers):
                task.cancel()
            for number in signals:
                loop.remove_signal_handler(number)
        if self._stopped_by and not self._all_ready.is_set():
            return interruption.exit_code(self._stopped_by)
        return FORCED_EXIT if self._forced else self._exit_code

    async def _announce(self, on_listening: Callable[[], Any]) -> None:
        await self._all_ready.wait()
        outcome = on_listening()
        if asyncio.iscoroutine(outcome):
            await outcome

    async def _keep(self, slot: int) -> None:
        """Keep one worker running until told to stop."""
        loop = asyncio.get_running_loop()
        delay = _FIRST_DELAY_SECONDS
        proven = False
        while not self._stopping.is_set():
            began = loop.time()
            was_ready, code = await self._run_one(slot)
            if self._stopping.is_set():
                return
            proven = proven or was_ready
            if not proven:
                # Nothing has changed since the first of them: the next would fail alike.
                self._exit_code = code if code > 0 else 1
                self._stop(signal.SIGTERM)
                return
            if loop.time() - began > _PROVEN_SECONDS:
                delay = _FIRST_DELAY_SECONDS
            _log.error("worker %d has ended (%s); starting another in %.1f s", slot, _describe(code), delay)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await self._stopping.wait()
            delay = min(2 * delay, _LONGEST_DELAY_SECONDS)

    async def _run_one(self, slot: int) -> tuple[bool, int]:
        """Run a worker to its end; returns whether it has served, and its exit code."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-P", "-m", "gateway.worker", str(self._sock.fileno()), str(os.getpid())),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            pass_fds=[self._sock.fileno()],
            env={**self._environ, **self._fleet.variables},
            # Ctrl-C reaches every process of the terminal's group; the workers are to hear of it from here alone.
            start_new_session=True,
        )
        self._running[slot] = process
        assert process.stdout is not None
        worker = self._fleet.join(process)
        try:
            if self._stopping.is_set():
                process.send_signal(signal.SIGTERM)
            was_ready = await process.stdout.readline() == READY
            if was_ready:
                self._ready += 1
                if self._ready == self._count:
                    self._all_ready.set()
            while line := await process.stdout.readline():
                self._heard(worker, from_line(line))
            return was_ready, await process.wait()
        finally:
            self._fleet.leave(worker)
            del self._running[slot]

    def _heard(self, worker: Worker, report: Report) -> None:
        if isinstance(report, Ask):
            task = asyncio.create_task(self._answer(worker, report), name="reload for a worker")
            self._answers.add(task)
            task.add_done_callback(self._answers.discard)
        else:
            self._fleet.heard(worker, report)

    async def _answer(self, worker: Worker, asked: Ask) -> None:
        if asked.question:
            worker.send(Tell(await self._reloader.reload(asked.trigger, dry_run=asked.dry_run), asked.question))
        else:
            self._reloader.reload_soon(asked.trigger)

    def _on_signal(self, number: signal.Signals) -> None:
        if number == signal.SIGINT and self._stopping.is_set():
            self._forced = True
            self._send(signal.SIGKILL)
        elif number == signal.SIGHUP and not self._terminal.is_gone:
            if not self._stopping.is_set():
                self._reloader.reload_soon(RELOAD_SIGNAL)
        else:
            self._stopped_by = self._stopped_by or number
            self._stop(signal.SIGTERM)

    def _stop(self, number: signal.Signals) -> None:
        self._stopping.set()
        self._send(number)

    def _send(self, number: signal.Signals) -> None:
        for process in self._running.values():
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(number)


def _describe(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"
