"""What an engine can be told (`EngineConfig`), and what its process gets of that (`ChildOptions`)."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

_CGROUP_CPU_LIMIT = Path("/sys/fs/cgroup/cpu.max")


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """A model to serve and the resources it may take.

    *model* is the name of a known model in the store, or the path of a GGUF file of one's own. *context* is what one
    request may use; memory is taken for *slots* times as much. *threads* None means `default_threads`.
    """

    model: str
    name: str = ""
    """What the engine calls itself in answers; the model's own name when empty."""
    context: int = 4096
    slots: int = 2
    threads: int | None = None
    cache_ram_mib: int = 256
    """Memory for prompts of earlier requests. The engine's own default is 8 GiB, more than small machines have."""
    embeddings: bool = False
    loopback_port: bool = sys.platform == "win32"
    """Listen on a port of 127.0.0.1, with a key only this process knows, instead of a unix socket."""
    start_timeout_seconds: float = 600.0
    store: Path | None = None
    """Where models are kept; None: the place `registry.default_store` names."""

    def __post_init__(self) -> None:
        for field_name, least in (("context", 64), ("slots", 1), ("threads", 1), ("cache_ram_mib", 0)):
            value = getattr(self, field_name)
            if value is not None and value < least:
                raise ValueError(f"{field_name} must be at least {least}, not {value}")


@dataclass(frozen=True, slots=True)
class ChildOptions:
    """What the child reads first from its standard input, as JSON."""

    model_path: str
    name: str
    context: int
    slots: int
    threads: int
    cache_ram_mib: int
    embeddings: bool
    host: str
    """A path that ends in ``.sock``, or an address."""
    port: int = 0
    api_key: str = ""
    parent_pid: int = 0

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> ChildOptions:
        values: dict[str, Any] = json.loads(text)
        return cls(**values)


class ChildExit(IntEnum):
    """Exit codes of the child; with any other it died of something it could not tell."""

    OK = 0
    LIBRARY_MISSING = 70  # xllamacpp or a system library it needs cannot be loaded
    MODEL_UNREADABLE = 71  # the engine refused the file or could not get its memory


def usable_cpus() -> int:
    """How many CPUs this process may really use: its affinity mask, and the limit of its container if that is less."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = _CGROUP_CPU_LIMIT.read_text().split()
        cpus = min(cpus, max(1, int(quota) // int(period)))
    except (OSError, ValueError):  # not Linux, cgroup v1, or "max": no limit
        pass
    return cpus


def default_threads() -> int:
    """One thread fewer than there are CPUs.

    The engine's threads wait for each other by spinning. With one on every CPU, any other process (this gateway
    first of all) stalls all of them: 12-20 times slower on a busy machine with two CPUs, measured November 2026.
    """
    return max(1, usable_cpus() - 1)
