"""One reload after another: read, compare, build, swap; or say what is wrong and leave everything as it is."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from adapters.located_yaml import Problem
from gateway.config.certificates import all_stamps
from gateway.config.problems import ConfigError
from gateway.engines import fetch_models
from gateway.reload.differences import differences, keep_until_restart
from gateway.reload.outcome import Outcome
from gateway.reload.source import Source
from gateway.reload.watch import watch
from gateway.settings import Settings
from gateway.start_errors import START_ERRORS
from gateway.telemetry.redact import mask

_log = logging.getLogger(__name__)


class InstallError(Exception):
    """New settings are right by themselves, and still cannot be put into service; the message says why."""


class Installer(Protocol):
    """What puts settings into service: one process, or a parent and its workers."""

    @property
    def settings(self) -> Settings:
        """Those in force."""

    async def prepare(self, settings: Settings) -> None:
        """Build all that *settings* ask for, beside what is in force; what goes wrong is raised and nothing is left."""

    async def commit(self) -> None:
        """Put what was prepared in force."""

    def tell(self, outcome: Outcome) -> None:
        """Note what came of a reload that was not only tried."""


class Reloads(Protocol):
    """Reloads as a process that answers requests sees them."""

    @property
    def last(self) -> Outcome:
        """What came of the last one."""

    async def reload(self, trigger: str, *, dry_run: bool = False) -> Outcome:
        """Read the configuration again and put it in force; with *dry_run* only tell what that would change."""

    def reload_soon(self, trigger: str) -> None:
        """As `reload`, without waiting. Asking again before one has begun asks for the same one."""


class Reloader:
    """Implements `Reloads` where the configuration is read."""

    def __init__(self, source: Source, installer: Installer, clock: Callable[[], float] = time.time) -> None:
        self.last = Outcome(True, "start", clock())
        self._source = source
        self._installer = installer
        self._clock = clock
        self._certificates = all_stamps(installer.settings)
        self._one_at_a_time = asyncio.Lock()
        self._asked = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def reload(self, trigger: str, *, dry_run: bool = False) -> Outcome:
        async with self._one_at_a_time:
            outcome = await self._reload(trigger, dry_run)
            if dry_run:
                return outcome
            self._report(outcome)
            self.last = outcome
            self._installer.tell(outcome)
            return outcome

    def reload_soon(self, trigger: str) -> None:
        if not self._asked:
            self._asked = True
            self._run(self._reload_soon(trigger), "reload")

    def start_watching(self) -> None:
        """Reload whenever the file changes, until `aclose`."""
        self._run(watch(self._source, lambda: self.reload("file")), "configuration")

    async def aclose(self) -> None:
        """End what runs; a configuration that is being built is given up."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _run(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _reload_soon(self, trigger: str) -> None:
        async with self._one_at_a_time:
            pass  # what was asked for while the last one ran
        self._asked = False
        await self.reload(trigger)

    async def _reload(self, trigger: str, dry_run: bool) -> Outcome:
        try:
            # Large files take a while, for which requests are not to wait.
            loaded = await asyncio.to_thread(self._source.load)
            return await self._install(loaded, trigger, dry_run)
        except ConfigError as error:
            return self._refused(trigger, tuple(error.problems))
        except (InstallError, *START_ERRORS, OSError) as error:
            return self._refused(trigger, (self._problem(str(error)),))
        except Exception as bug:  # noqa: BLE001 - the edge: whatever happens here, the old configuration goes on
            _log.exception("a new configuration could not be built", exc_info=bug)
            return self._refused(trigger, (self._problem("it could not be built; the log says why"),))

    async def _install(self, loaded: Settings, trigger: str, dry_run: bool) -> Outcome:
        running = self._installer.settings
        settings, needs_restart = keep_until_restart(running, loaded)
        changed = differences(running, settings)
        certificates = all_stamps(settings)
        if not dry_run and (changed or certificates != self._certificates):
            await fetch_models(settings, running)
            await self._installer.prepare(settings)
            await self._installer.commit()
            self._certificates = certificates
        return Outcome(True, trigger, self._clock(), changed, needs_restart)

    def _refused(self, trigger: str, problems: tuple[Problem, ...]) -> Outcome:
        return Outcome(False, trigger, self._clock(), problems=problems)

    def _problem(self, message: str) -> Problem:
        return Problem(self._source.name, 0, 0, "", mask(message))

    def _report(self, outcome: Outcome) -> None:
        level = logging.INFO if outcome.ok else logging.ERROR
        _log.log(level, "%s (asked for by %s)", outcome.in_words(), outcome.trigger)
        if outcome.needs_restart:
            _log.warning("only a restart brings what is new of %s", ", ".join(outcome.needs_restart))
