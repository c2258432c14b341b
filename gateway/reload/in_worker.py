"""Reloads in one of several workers: the parent reads the configuration, every worker builds its own of it."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import time
from collections.abc import Callable

from gateway.owned_parts import Reached, shared_parts
from gateway.reload.installation import Installation
from gateway.reload.orders import (
    Abandon,
    Ask,
    Commit,
    Committed,
    Order,
    Over,
    Prepare,
    Prepared,
    Refused,
    Report,
    Tell,
    to_line,
)
from gateway.reload.outcome import Outcome
from gateway.services import Configuration
from gateway.start_errors import START_ERRORS
from gateway.telemetry.redact import mask

_log = logging.getLogger(__name__)


class ParentReloads:
    """Implements `Reloads` by asking the parent, and does what the parent orders."""

    def __init__(self, report: Callable[[bytes], object] | None = None) -> None:
        """*report* writes a line to the parent; left out, it goes to standard output."""
        self.last = Outcome(True, "start", time.time())
        self._loop = asyncio.get_running_loop()
        self._write = report or (lambda line: os.write(1, line))
        self._orders: asyncio.Queue[Order] = asyncio.Queue()
        self._questions = itertools.count(1)
        self._asked: dict[int, asyncio.Future[Outcome]] = {}
        self._prepared: tuple[int, Configuration, Reached] | None = None

    async def reload(self, trigger: str, *, dry_run: bool = False) -> Outcome:
        question = next(self._questions)
        answer: asyncio.Future[Outcome] = self._loop.create_future()
        self._asked[question] = answer
        self._report(Ask(question, trigger, dry_run))
        try:
            return await answer
        finally:
            del self._asked[question]

    def reload_soon(self, trigger: str) -> None:
        self._report(Ask(0, trigger, False))

    def order(self, order: Order) -> None:
        """Have *order* done after those before it; may be called from any thread."""
        self._loop.call_soon_threadsafe(self._orders.put_nowait, order)

    async def obey(self, installation: Installation) -> None:
        """Do what the parent orders, until cancelled."""
        while True:
            order = await self._orders.get()
            match order:
                case Tell():
                    self._tell(order)
                case Prepare():
                    await self._prepare(order, installation)
                case Commit():
                    self._commit(order.number, installation)
                case Abandon():
                    self._prepared = None

    def _tell(self, told: Tell) -> None:
        if not told.question:
            self.last = told.outcome
        elif (answer := self._asked.get(told.question)) is not None and not answer.done():
            answer.set_result(told.outcome)

    async def _prepare(self, order: Prepare, installation: Installation) -> None:
        reached = shared_parts(order.variables, installation.reached)
        assert reached is not None
        try:
            configuration = await installation.build(order.settings, reached)
        except (*START_ERRORS, OSError) as error:
            self._report(Refused(order.number, mask(str(error))))
        except Exception as bug:  # noqa: BLE001 - the edge: whatever happens here, the old configuration goes on
            _log.exception("a new configuration could not be built", exc_info=bug)
            self._report(Refused(order.number, "it could not be built; the log says why"))
        else:
            self._prepared = order.number, configuration, reached
            self._report(Prepared(order.number))

    def _commit(self, number: int, installation: Installation) -> None:
        if self._prepared is None or self._prepared[0] != number:
            return
        (_, configuration, reached), self._prepared = self._prepared, None

        async def over() -> None:
            self._report(Over(number))

        installation.swap(configuration, reached, over)
        self._report(Committed(number))

    def _report(self, report: Report) -> None:
        self._write(to_line(report))
