"""How workers see each other's metrics: each writes its figures to a file, whoever is scraped adds them up."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias
from uuid import uuid4

import msgspec

from gateway.__about__ import ENV_PREFIX
from gateway.telemetry.series import Labels, Numbers

RUNTIME_DIR_VARIABLE = ENV_PREFIX + "RUNTIME_DIR"
"""Names a private directory, made by the supervisor of the workers and gone when it ends."""

WRITE_EVERY_SECONDS = 2.0
_STALE_AFTER_SECONDS = 3 * WRITE_EVERY_SECONDS

_Series: TypeAlias = dict[str, dict[Labels, Numbers]]


class _File(msgspec.Struct, array_like=True):
    written_at: float
    counters: dict[str, list[tuple[Labels, Numbers]]]
    gauges: dict[str, list[tuple[Labels, Numbers]]]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Figures of another worker. Counters outlive it; gauges are empty once it has been silent for a while."""

    counters: _Series
    gauges: _Series


class Snapshots:
    """The files in one directory; *clock* is wall time, because the files are read by other processes."""

    def __init__(self, directory: Path, clock: Callable[[], float] = time.time) -> None:
        self._directory = directory
        self._clock = clock
        # Not the process id: a restarted worker may get the id of a dead one, whose counters must stay counted.
        self._own = directory / f"metrics-{uuid4().hex}.json"

    @classmethod
    def from_environment(cls) -> Snapshots | None:
        """None for a single worker, which has nobody to share with."""
        directory = os.environ.get(RUNTIME_DIR_VARIABLE)
        return cls(Path(directory)) if directory else None

    def write(self, counters: _Series, gauges: _Series) -> None:
        """Replace this worker's file, so that a reader sees the old figures or the new, never half of them."""
        file = _File(self._clock(), _as_lists(counters), _as_lists(gauges))
        draft = self._own.with_suffix(".new")
        draft.write_bytes(msgspec.json.encode(file))
        draft.replace(self._own)

    def of_others(self) -> Iterator[Snapshot]:
        """The last figures of every other worker of this run, those that have ended among them."""
        for path in self._directory.glob("metrics-*.json"):
            if path == self._own:
                continue
            # A file that cannot be read is not worth a failed scrape.
            with contextlib.suppress(OSError, msgspec.DecodeError):
                file = msgspec.json.decode(path.read_bytes(), type=_File)
                alive = self._clock() - file.written_at <= _STALE_AFTER_SECONDS
                yield Snapshot(_as_dicts(file.counters), _as_dicts(file.gauges) if alive else {})


async def publish_regularly(publish: Callable[[], None]) -> None:
    """Call *publish* now and every two seconds until cancelled."""
    while True:
        publish()
        await asyncio.sleep(WRITE_EVERY_SECONDS)


def _as_lists(series: _Series) -> dict[str, list[tuple[Labels, Numbers]]]:
    return {name: list(of_family.items()) for name, of_family in series.items()}


def _as_dicts(series: dict[str, list[tuple[Labels, Numbers]]]) -> _Series:
    return {name: dict(of_family) for name, of_family in series.items()}
