"""What an engine can be told (`EngineConfig`), and what its process gets of that (`ChildOptions`)."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

from local_engine.memory import Load, MemoryCheck
from local_engine.purpose import Purpose

_CGROUP_CPU_LIMIT = Path("/sys/fs/cgroup/cpu.max")


DEFAULT_BATCH = 64
"""Prompt tokens that are computed in one go. Between two batches of a prompt the engine can tell how far it is, and so
notice that a client has left; this many take this project's default model half a second on one CPU."""

_EMBEDDING_BATCH = 2048


@dataclass(frozen=True, slots=True)
class Adapter:
    """A LoRA adapter that is loaded with the model. One with a *name* is applied to requests that ask for it."""

    path: Path
    scale: float = 1.0
    name: str = ""


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
    batch_threads: int | None = None
    """Threads that read prompts; as many as *threads* when None."""
    batch: int | None = None
    """Tokens of a prompt that are computed in one go; `DEFAULT_BATCH` when None, or as long as an input may be."""
    flash_attention: str = "auto"
    """auto, on or off."""
    kv_type: str = "f16"
    """One of `memory.KV_TYPES`."""
    chat_template: Path | None = None
    """A Jinja template in place of the one in the model's file."""
    cache_ram_mib: int = 256
    """Memory for prompts of earlier requests. The engine's own default is 8 GiB, more than small machines have."""
    chat: bool | None = None
    embeddings: bool | None = None
    rerank: bool | None = None
    """What it is started for; None: what its file says it is for."""
    pooling: str | None = None
    """How vectors are pooled: mean, cls or last; None: as its file says."""
    adapters: tuple[Adapter, ...] = ()
    command: tuple[str, ...] = ()
    """A server to run in place of the bundled one; ``{socket}`` or ``{port}`` in it is where it has to listen."""
    idle_unload_seconds: float | None = None
    """Unload the model when it was not used for this long; None: never."""
    memory_check: MemoryCheck = MemoryCheck.REFUSE
    stamps: tuple[tuple[str, int, int], ...] = ()
    """Path, time of the last change and size of its files: one that was replaced makes it another engine."""
    loopback_port: bool = sys.platform == "win32"
    """Listen on a port of 127.0.0.1, with a key only this process knows, instead of a unix socket."""
    start_timeout_seconds: float = 600.0
    store: Path | None = None
    """Where models are kept; None: the place `registry.default_store` names."""

    def __post_init__(self) -> None:
        bounds = {"context": 64, "slots": 1, "threads": 1, "batch_threads": 1, "batch": 1, "cache_ram_mib": 0}
        for field_name, least in bounds.items():
            value = getattr(self, field_name)
            if value is not None and value < least:
                raise ValueError(f"{field_name} must be at least {least}, not {value}")

    def load(self, path: Path, purpose: Purpose) -> Load:
        """What its memory depends on, with the file at *path*."""
        batch = self.batch_of(purpose)
        adapters = tuple(adapter.path for adapter in self.adapters)
        return Load(path, self.context, self.slots, batch, self.kv_type, self.cache_ram_mib << 20, adapters)

    def batch_of(self, purpose: Purpose) -> int:
        """The size of its batches. An input whose tokens are pooled is pooled in one piece, so it must fit one."""
        whole = purpose.embeddings or purpose.rerank
        return self.batch or (min(self.context, _EMBEDDING_BATCH) if whole else DEFAULT_BATCH)


@dataclass(frozen=True, slots=True)
class ChildOptions:
    """What the child reads first from its standard input, as JSON."""

    model_path: str
    name: str
    context: int
    slots: int
    threads: int
    cache_ram_mib: int
    host: str
    """A path that ends in ``.sock``, or an address."""
    batch_threads: int
    batch: int
    flash_attention: str = "auto"
    kv_type: str = "f16"
    chat_template: str = ""
    """The template itself."""
    pools: bool = False
    """Whether it makes vectors or scores."""
    pooling: str | None = None
    """None: what the model's file says."""
    adapters: tuple[tuple[str, float], ...] = ()
    """Path and scale of each; a scale of 0 loads one without applying it."""
    port: int = 0
    api_key: str = ""
    parent_pid: int = 0

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> ChildOptions:
        values: dict[str, Any] = json.loads(text)
        values["adapters"] = tuple((path, scale) for path, scale in values["adapters"])
        return cls(**values)


class ChildExit(IntEnum):
    """Exit codes of the child; with any other it died of something it could not tell."""

    OK = 0
    LIBRARY_MISSING = 70  # xllamacpp or a system library it needs cannot be loaded
    MODEL_UNREADABLE = 71  # the engine refused the file or could not get its memory
    COMMAND_MISSING = 72  # the program of a command cannot be started


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
