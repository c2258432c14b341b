"""On what, when and how figures were taken: they mean nothing without it."""

from __future__ import annotations

import datetime
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

BUSY: Final = 1.5
"""The load average from which on a machine of two cores is not quiet."""


def about(root: Path, versions: Mapping[str, str]) -> dict[str, Any]:
    """The machine, the date, the command and what was compared."""
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "command": shlex.join(["python", *sys.argv]),
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "commit": commit(root),
        "load_before": load_average(),
        "versions": dict(versions),
    }


def told(facts: Mapping[str, Any]) -> str:
    """The same in words for people."""
    versions = ", ".join(f"{name} {version}".strip() for name, version in facts["versions"].items())
    busy = "" if facts["load_before"] < BUSY else ", a BUSY machine: trust ratios at most"
    return (
        f"{facts['date']}, {facts['cores']} x {facts['cpu']}, {facts['system']}, Python {facts['python']}, "
        f"load average {facts['load_before']:.1f}{busy}\n"
        f"{versions} (commit {facts['commit']})\n"
        f"$ {facts['command']}"
    )


def cpu_model() -> str:
    """What the processor calls itself."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def load_average() -> float:
    """Of the last minute."""
    return round(os.getloadavg()[0], 2)


def commit(root: Path) -> str:
    """The commit that *root* is at, with a + where it has changes of its own."""
    try:
        command = ["git", "-C", str(root), "describe", "--always", "--dirty=+", "--exclude=*"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
