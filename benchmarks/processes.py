"""A gateway as the operating system sees it: started on its own core, stopped and continued, its time and memory."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_PARENT, _SESSION, _STARTED = 1, 3, 19
"""Places in /proc/PID/stat, counted from behind the name."""


class Running:
    """A command and everything it has started."""

    def __init__(
        self, command: Sequence[str], *, cpus: Collection[int], folder: Path, env: Mapping[str, str], log: Path
    ) -> None:
        """Start *command* in *folder* on *cpus*, with *env* added to ours; what it prints goes to *log*."""
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                env={**os.environ, **env},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=pinned_to(cpus),
            )
        self.pid = self._process.pid

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def cpu_seconds(self) -> float:
        """The time its processes have spent on a core so far. A thread that ended is not in it."""
        return sum(_cpu_nanoseconds(pid) for pid in self._members()) / 1e9

    def memory_mb(self) -> float:
        """Its memory in MB, pages shared with others counted in parts."""
        return sum(_proportional_kb(pid) for pid in self._members()) / 1024

    def pause(self) -> None:
        _signal(self._members(), signal.SIGSTOP)

    def resume(self) -> None:
        _signal(self._members(), signal.SIGCONT)

    def stop(self, patience: float = 4.0) -> None:
        """End it, by force after *patience* seconds."""
        started = list(self._members())  # once it has ended, nothing leads from it to them
        self.resume()
        if not self.ended:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(patience)
        _signal([*started, *self._members()], signal.SIGKILL)
        self._process.wait()

    def _members(self) -> Iterator[int]:
        """Itself, its descendants, and those of its session that outlived their parents."""
        found = {self.pid}
        for pid, parent, session in _processes():
            if session == self.pid or parent in found:
                found.add(pid)
        return iter(sorted(found))


def pinned_to(cpus: Collection[int]) -> Callable[[], None]:
    """What a new process calls to run on *cpus* alone."""
    return lambda: os.sched_setaffinity(0, cpus)


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _processes() -> list[tuple[int, int, int]]:
    """Number, parent and session of every process, parents before the children they started."""
    found = []
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):  # it has just ended
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                found.append((int(fields[_STARTED]), int(entry.name), int(fields[_PARENT]), int(fields[_SESSION])))
    return [(pid, parent, session) for _, pid, parent, session in sorted(found)]


def _cpu_nanoseconds(pid: int) -> int:
    total = 0
    for task in _PROC.glob(f"{pid}/task/*/schedstat"):
        with contextlib.suppress(OSError):
            total += int(task.read_text().split()[0])
    return total


def _proportional_kb(pid: int) -> int:
    try:
        lines = (_PROC / str(pid) / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
