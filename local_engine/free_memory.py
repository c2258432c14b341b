"""Memory that this process may still take: what the machine has free, and what its container allows if that is less."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path("/")


@dataclass(frozen=True, slots=True)
class FreeMemory:
    """Bytes available, and the limit of the container if it is that which binds."""

    available: int
    limit: int | None = None

    def describe(self) -> str:
        within = f", within the container's limit of {size(self.limit)}" if self.limit is not None else ""
        return f"{size(self.available)} are free{within}"


def size(count: int) -> str:
    """Bytes as people say them."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"


def free_memory(root: Path = _ROOT) -> FreeMemory | None:
    """What is free now; None where the system does not tell. *root* is where ``proc`` and ``sys`` are."""
    free = _of_machine(root)
    for limit, used in _of_containers(root):
        room = max(0, limit - used)
        if free is None or room < free.available:
            free = FreeMemory(room, limit)
    return free


def _of_machine(root: Path) -> FreeMemory | None:
    try:
        for line in (root / "proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return FreeMemory(int(line.split()[1]) * 1024)
    except (OSError, ValueError, IndexError):
        pass
    if root != _ROOT:
        return None
    try:
        return FreeMemory(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return None


def _of_containers(root: Path) -> Iterator[tuple[int, int]]:
    """Limit and use, in bytes, of each control group this process is in that has a limit, and of those around it."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            folder, names = root / "sys/fs/cgroup", ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            folder = root / "sys/fs/cgroup/memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        # In a container the path may be the one outside, of which nothing is mounted here.
        inner = folder / path.lstrip("/")
        for group in (inner, *inner.parents):
            if not group.is_relative_to(folder):
                break
            found = _limit(group, *names)
            if found is not None:
                yield found


def _limit(group: Path, limit_name: str, used_name: str, cache_name: str) -> tuple[int, int] | None:
    try:
        limit = int((group / limit_name).read_text())
        used = int((group / used_name).read_text())
        statistics = (group / "memory.stat").read_text().splitlines()
    except (OSError, ValueError):  # no such group, or "max": no limit
        return None
    # Files that were read a while ago are dropped before anybody is refused memory.
    cache = next((int(line.split()[1]) for line in statistics if line.startswith(cache_name + " ")), 0)
    return limit, max(0, used - cache)
