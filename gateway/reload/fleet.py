"""Puts a configuration in force in all workers or in none, and stops what no request of any worker needs any more."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from typing import Final, Protocol

from gateway.owned_parts import OwnedParts, Part, Parts, share
from gateway.reload.orders import Abandon, Commit, Committed, Order, Over, Prepare, Prepared, Refused, Tell, pack
from gateway.reload.outcome import Outcome
from gateway.reload.reloader import InstallError
from gateway.settings import Settings

_log = logging.getLogger(__name__)

_BUILD_SECONDS: Final = 60.0
_COMMIT_SECONDS: Final = 10.0


class Process(Protocol):
    """What is needed of a worker's process."""

    @property
    def stdin(self) -> asyncio.StreamWriter | None: ...

    def terminate(self) -> None: ...


class Worker:
    """One worker as reloads see it."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.gone = asyncio.Event()
        self.ordered = 0
        """The last configuration it was told to prepare."""

    def send(self, order: Settings | Order) -> None:
        """Write *order*; one that cannot take it any more is about to be replaced."""
        if isinstance(order, Prepare):
            self.ordered = order.number
        if self._process.stdin is not None and not self._process.stdin.is_closing():
            self._process.stdin.write(pack(order))

    def terminate(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()


class _Round:
    """Who has answered to one configuration, and how."""

    def __init__(self) -> None:
        self.refusals: list[str] = []
        self.committed = False
        self._done: dict[tuple[type, Worker], asyncio.Event] = {}

    def note(self, kind: type, worker: Worker) -> None:
        self._event(kind, worker).set()

    async def all(self, kind: type, workers: set[Worker]) -> None:
        """Return when each of *workers* has reported *kind*, or has gone."""
        waits = [
            asyncio.ensure_future(event.wait())
            for worker in workers
            for event in (self._event(kind, worker), worker.gone)
        ]
        try:
            for one, other in zip(waits[::2], waits[1::2], strict=True):
                await asyncio.wait([one, other], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    def _event(self, kind: type, worker: Worker) -> asyncio.Event:
        return self._done.setdefault((kind, worker), asyncio.Event())


class Fleet:
    """Implements `Installer` for the parent of several workers, which owns their engines and bridges."""

    def __init__(self, settings: Settings, parts: OwnedParts) -> None:
        self.settings = settings
        self._parts = parts
        self._workers: set[Worker] = set()
        self._number = 0
        self._rounds: dict[int, _Round] = {}
        self._prepared: tuple[Prepare, Parts] | None = None
        self._last: Outcome | None = None
        self._retiring: set[asyncio.Task[None]] = set()

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment variables by which a new worker finds the shared parts."""
        return share(self._parts.current)

    def join(self, process: Process) -> Worker:
        """Let a new process start by the settings in force, and take part in reloads."""
        worker = Worker(process)
        worker.send(self.settings)
        if self._last is not None:
            worker.send(Tell(self._last))
        self._workers.add(worker)
        return worker

    def leave(self, worker: Worker) -> None:
        """*worker* has ended."""
        self._workers.discard(worker)
        worker.gone.set()

    def heard(self, worker: Worker, report: Prepared | Refused | Committed | Over) -> None:
        """Take a worker's report."""
        current = self._rounds.get(report.number)
        if current is None:
            return
        current.note(Prepared if isinstance(report, Refused) else type(report), worker)
        if isinstance(report, Refused):
            current.refusals.append(report.message)
            if current.committed:
                _log.error("a worker cannot take over the configuration and is replaced: %s", report.message)
                worker.terminate()

    async def prepare(self, settings: Settings) -> None:
        parts = await self._parts.prepare(settings)
        self._number += 1
        order = Prepare(self._number, settings, share(parts))
        current = self._rounds[order.number] = _Round()
        try:
            asked = set(self._workers)
            for worker in asked:
                worker.send(order)
            async with asyncio.timeout(_BUILD_SECONDS):
                await current.all(Prepared, asked)
            if current.refusals:
                raise InstallError(current.refusals[0])
        except BaseException as error:
            for worker in self._workers:
                worker.send(Abandon(order.number))
            await self._parts.discard(parts)
            del self._rounds[order.number]
            if isinstance(error, TimeoutError):
                raise InstallError(f"a worker did not get it built within {_BUILD_SECONDS:g} s") from None
            raise
        self._prepared = order, parts

    async def commit(self) -> None:
        assert self._prepared is not None
        (order, parts), self._prepared = self._prepared, None
        current = self._rounds[order.number]
        current.committed = True
        self.settings = order.settings
        unneeded = self._parts.adopt(parts)
        workers = set(self._workers)
        for worker in workers:
            if worker.ordered != order.number:
                worker.send(order)  # it has come since the others were asked
            worker.send(Commit(order.number))
        task = asyncio.create_task(self._retire(order.number, workers, unneeded), name="retiring a configuration")
        self._retiring.add(task)
        task.add_done_callback(self._retiring.discard)
        try:
            async with asyncio.timeout(_COMMIT_SECONDS):
                await current.all(Committed, workers)
        except TimeoutError:
            _log.warning("not every worker has told that the new configuration is in force")

    def tell(self, outcome: Outcome) -> None:
        self._last = outcome
        for worker in self._workers:
            worker.send(Tell(outcome))

    async def aclose(self) -> None:
        """Wait for no worker any more."""
        for task in self._retiring:
            task.cancel()
        if self._retiring:
            await asyncio.wait(self._retiring)

    async def _retire(self, number: int, workers: set[Worker], unneeded: list[Part]) -> None:
        try:
            await self._rounds[number].all(Over, workers)
        finally:
            del self._rounds[number]
        await self._parts.stop(unneeded)
