"""What a running process holds, read from outside: memory, descriptors, and what it tells when asked by a signal."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import statistics
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from tests.fakes.gateway_process import GatewayProcess
from tests.fakes.raw_client import RawClient

_PROC = Path("/proc")
_T = TypeVar("_T")


def proportional_kb(*pids: int) -> int:
    """The memory that processes have written to, what several share counted in parts.

    Pages of files are left out. They never leak, and their part of each process changes with whoever else on the
    machine has the same libraries or models open.
    """
    total = 0
    for pid in pids:
        lines = (_PROC / str(pid) / "smaps_rollup").read_text().splitlines()
        total += sum(int(line.split()[1]) for line in lines if line.startswith(("Pss_Anon:", "Pss_Shmem:")))
    return total


def cpu_seconds(pid: int) -> float:
    """What a process has computed so far."""
    fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def seconds_waiting_for_cpu(pid: int) -> tuple[float, float]:
    """How long the main thread of a process was ready to run and was not let, in all and on average each time."""
    _, waited, slices = map(int, (_PROC / str(pid) / "schedstat").read_text().split())
    return waited / 1e9, waited / 1e9 / max(1, slices)


def descriptors(pid: int) -> Counter[str]:
    """How many descriptors there are, by what they lead to; sockets are all one."""
    found: Counter[str] = Counter()
    for entry in (_PROC / str(pid) / "fd").iterdir():
        target = str(entry.readlink())
        found[target.partition(":[")[0]] += 1
    return found


async def once_equal(read: Callable[[], Awaitable[_T]], expected: _T, seconds: float = 20.0) -> _T:
    """What *read* gives once that is what was *expected*, or after *seconds*: what just goes on is no leak."""
    until = time.monotonic() + seconds
    while (found := await read()) != expected and time.monotonic() < until:
        await asyncio.sleep(0.5)
    return found


async def left_over(
    read: Callable[[], Awaitable[Sequence[Mapping[str, int]]]],
    before: Sequence[Mapping[str, int]],
    seconds: float = 20.0,
) -> list[Counter[str]]:
    """What *read* counts beyond what was there *before*, once that is nothing or after *seconds*: some just goes on."""
    until = time.monotonic() + seconds
    while True:
        more = [Counter(found) - Counter(known) for found, known in zip(await read(), before, strict=True)]
        if not any(more) or time.monotonic() > until:
            return more
        await asyncio.sleep(0.5)


async def once_still(read: Callable[[], Awaitable[_T]], seconds: float = 20.0) -> _T:
    """What *read* gives once it gives the same twice: a request that was just answered leaves its task for a moment."""
    found = await read()
    async with asyncio.timeout(seconds):
        while True:
            await asyncio.sleep(0.5)
            before, found = found, await read()
            if before == found:
                return found


async def inside(gateway: GatewayProcess, folder: Path) -> dict[str, int]:
    """What the gateway has in hand: tasks, holds, places at providers, watches. *folder* is the one it runs in."""
    told = folder / "inside.json"
    told.unlink(missing_ok=True)
    gateway.signal(signal.SIGUSR2)
    async with asyncio.timeout(30):
        while not told.exists():
            await asyncio.sleep(0.02)
    counts: dict[str, int] = json.loads(told.read_text())
    return counts


async def metric(port: int, name: str, *labels: str) -> float:
    """The sum of the series called *name* that carry all of *labels*, at the gateway that listens on *port*."""
    client = await RawClient.connect(port, limit=2**24)
    await client.send(b"GET /metrics HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n\r\n")
    text = (await client.answer(30)).body.decode()
    await client.close()
    series = (line.rpartition(" ") for line in text.splitlines() if line.partition("{")[0].partition(" ")[0] == name)
    return sum(float(value) for told, _, value in series if all(label in told for label in labels))


@dataclass(slots=True)
class Lag:
    """How late the event loop of this process comes to what is due."""

    seconds: list[float] = field(default_factory=list)

    async def watch(self) -> None:
        """Measure until cancelled."""
        while True:
            due = time.monotonic() + 0.05
            await asyncio.sleep(0.05)
            self.seconds.append(time.monotonic() - due)


@dataclass(slots=True)
class Memory:
    """Samples of the memory of processes under load."""

    pids: tuple[int, ...]
    samples: list[int] = field(default_factory=list)

    async def watch(self, every_seconds: float) -> None:
        """Take samples until cancelled."""
        while True:
            await asyncio.sleep(every_seconds)
            self.samples.append(proportional_kb(*self.pids))

    def _median(self, begin: float, end: float) -> float:
        count = len(self.samples)
        return statistics.median(self.samples[int(count * begin) : max(int(count * end), int(count * begin) + 1)])

    @property
    def drift(self) -> float:
        """By what part the last tenth is above the tenth that follows the warm-up, which is the first third."""
        return self._median(0.9, 1.0) / self._median(0.33, 0.43) - 1

    def __str__(self) -> str:
        told = ", ".join(f"{self._median(part / 10, part / 10 + 0.1) / 1024:.1f}" for part in range(10))
        return f"memory by tenths of the time: {told} MiB; drift {self.drift:+.2%}"
