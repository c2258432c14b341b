"""Looks at everything a local model needs on this machine, and says how to mend what is missing."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from local_engine import probe
from local_engine.engine import LocalEngine
from local_engine.errors import LocalEngineError
from local_engine.free_memory import free_memory
from local_engine.options import EngineConfig, default_threads, usable_cpus
from local_engine.registry import KnownModel, known_models, locate
from local_engine.supervisor import library_version
from local_engine.weights import check_weights

_START_SECONDS = 60.0
_TOKENS = 32
_SLOW_TOKENS_PER_SECOND = 5.0
# The default model with its cache and context takes about 400 MB.
_LITTLE_MEMORY_BYTES = 1 << 30


class Verdict(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; *fix* says what to do when it is not as it should be."""

    subject: str
    verdict: Verdict
    detail: str
    fix: str = ""


async def examine(store: Path) -> AsyncIterator[Finding]:
    """All findings, each as soon as it is there; the last one runs a model."""
    yield Finding("python", Verdict.OK, f"{platform.python_version()} ({sys.executable})")
    library = await _library()
    yield library
    yield _cpus()
    yield _memory()
    yield _store(store)
    usable = []
    for model in known_models():
        finding = _model(model, store)
        yield finding
        if finding.verdict is Verdict.OK:
            usable.append(model)
    if library.verdict is Verdict.OK and usable:
        yield await _generation(usable[0], store)
    else:
        yield Finding("generation", Verdict.WARN, "not tried, as something above is missing")


async def _library() -> Finding:
    try:
        version = await library_version()
    except LocalEngineError as error:
        message, _, fix = str(error).partition(": ")
        return Finding("engine library", Verdict.FAIL, message, fix)
    return Finding("engine library", Verdict.OK, f"xllamacpp {version}")


def _cpus() -> Finding:
    cpus = usable_cpus()
    detail = f"{cpus} usable, of which a model gets {default_threads()}"
    if cpus > 1:
        return Finding("cpus", Verdict.OK, detail)
    return Finding("cpus", Verdict.WARN, detail, "the gateway and the model share it: expect pauses, or allow a second")


def _memory() -> Finding:
    free = free_memory()
    if free is None:
        return Finding("memory", Verdict.OK, "unknown on this system")
    if free.available >= _LITTLE_MEMORY_BYTES:
        return Finding("memory", Verdict.OK, free.describe())
    fix = "close something, or lower `context` and `slots` of the provider"
    return Finding("memory", Verdict.WARN, free.describe(), fix)


def _store(store: Path) -> Finding:
    existing = next(path for path in (store, *store.parents) if path.exists())
    if not (existing.is_dir() and os.access(existing, os.W_OK)):
        return Finding("store", Verdict.FAIL, f"{existing} cannot be written", "set GATEWAY_LOCAL_DIR to another place")
    return Finding("store", Verdict.OK, f"{store}, {shutil.disk_usage(existing).free / 1e9:.1f} GB free")


def _model(model: KnownModel, store: Path) -> Finding:
    subject = f"model {model.name}"
    try:
        path, _ = locate(model.name, store)
    except LocalEngineError:
        return Finding(subject, Verdict.WARN, "not on this machine", f"gateway local pull {model.name}")
    try:
        check_weights(path, model)
    except LocalEngineError as error:
        fix = f"gateway local rm {model.name} && gateway local pull {model.name}"
        return Finding(subject, Verdict.FAIL, str(error), fix)
    return Finding(subject, Verdict.OK, f"{path.stat().st_size / 1e6:.0f} MB, sha256 as recorded")


async def _generation(model: KnownModel, store: Path) -> Finding:
    engine = LocalEngine(EngineConfig(model=model.name, context=512, slots=1, store=store))
    try:
        await engine.start()
        await engine.wait_ready(_START_SECONDS)
        answer = await probe.time_completion(engine.address, "Write a sentence about the sea.", _TOKENS)
        speed = float(answer["timings"]["predicted_per_second"])
    except LocalEngineError as error:
        log = "".join(f"\n  {line}" for line in engine.log_tail[-5:])
        return Finding("generation", Verdict.FAIL, f"{error}{log}", "what the engine said above is the reason")
    finally:
        await engine.stop()
    detail = f"{speed:.0f} tokens a second with {model.name}"
    if speed >= _SLOW_TOKENS_PER_SECOND:
        return Finding("generation", Verdict.OK, detail)
    return Finding("generation", Verdict.WARN, detail, "other work on this machine takes the CPUs: try `threads: 1`")
