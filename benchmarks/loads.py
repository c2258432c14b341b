"""The load: wrk where it can do the job, else the program of our own, and what either of them saw."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from benchmarks.processes import pinned_to

_SCRIPT: Final = Path(__file__).parent / "native" / "wrk.lua"


@dataclass(frozen=True, slots=True)
class Address:
    """Where requests go, and with which headers."""

    port: int
    path: str
    headers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Load:
    """How much is asked, for how long.

    Without a *rate* each connection asks again as soon as it is answered. Latencies are of what was asked after
    *warmup* seconds; the first requests are *spread* over as many.
    """

    connections: int
    seconds: float
    rate: float = 0.0
    warmup: float = 0.0
    spread: float = 0.0
    streams: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """What came back. Times are in microseconds; -1 where there was nothing to time."""

    answers: int = 0
    refused: int = 0
    """Answers with another status than 2xx."""
    broken: int = 0
    """Connections refused, closed or not understood."""
    events: int = 0
    fewest_events: int = -1
    answers_per_s: float = 0.0
    events_per_s: float = 0.0
    latency_p50: float = -1.0
    latency_p99: float = -1.0
    first_p99: float = -1.0
    sample: str = ""
    """The beginning of an answer that was refused."""

    @property
    def wrong(self) -> int:
        return self.refused + self.broken


class LoadFailedError(Exception):
    """The load itself did not run."""


class Loader:
    """Runs loads on *cpus*; *wrk* is the path of wrk, or None to do without."""

    def __init__(self, own: Path, wrk: str | None, cpus: Collection[int], folder: Path) -> None:
        self._own = own
        self._wrk = wrk
        self._cpus = cpus
        self._body = folder / "body.json"

    def run(self, address: Address, body: bytes, load: Load) -> Seen:
        """Ask *address* for *body* until the load is over."""
        self._body.write_bytes(body)
        command = self._command(address, load)
        limit = load.seconds + load.warmup + 30
        try:
            ran = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=limit, preexec_fn=pinned_to(self._cpus)
            )
        except subprocess.TimeoutExpired as late:
            raise LoadFailedError(f"the load did not end within {limit:.0f} s") from late
        return read_seen(ran.stdout, ran.stderr)

    def start(self, address: Address, body: bytes, load: Load) -> subprocess.Popen[bytes]:
        """Begin a load whose outcome is of no interest."""
        self._body.write_bytes(body)
        return subprocess.Popen(
            self._own_command(address, load), stdout=subprocess.DEVNULL, preexec_fn=pinned_to(self._cpus)
        )

    def _command(self, address: Address, load: Load) -> Sequence[str]:
        if self._wrk is None or load.streams or load.rate or load.warmup or load.seconds != int(load.seconds):
            return self._own_command(address, load)
        url = f"http://127.0.0.1:{address.port}{address.path}"
        shape = ["-t1", f"-c{load.connections}", f"-d{load.seconds:.0f}s", "--timeout", "30s", "-s", str(_SCRIPT)]
        return [self._wrk, *shape, url, "--", str(self._body), *address.headers]

    def _own_command(self, address: Address, load: Load) -> list[str]:
        numbers = {
            "-p": address.port,
            "-c": load.connections,
            "-d": load.seconds,
            "-w": load.warmup,
            "-s": load.spread,
            "-r": load.rate,
        }
        command = [str(self._own), "-u", address.path, "-b", str(self._body)]
        for name, number in numbers.items():
            command += [name, f"{number:g}"]
        for header in address.headers:
            command += ["-H", header]
        return command


def read_seen(printed: str, errors: str = "") -> Seen:
    """What a load printed as its last line. Members that only one of the two tools has keep their defaults."""
    try:
        found: dict[str, Any] = json.loads(printed.strip().splitlines()[-1])
    except (ValueError, IndexError):
        raise LoadFailedError(f"the load printed no result: {(errors or printed).strip()[:300]}") from None
    names = {field.name for field in fields(Seen)}
    return Seen(**{name: value for name, value in found.items() if name in names})
