"""schemathesis in an environment of its own, run against a gateway, and what it reported."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

CHECKOUT: Final = Path(__file__).resolve().parents[2]
PINS: Final = CHECKOUT / "requirements" / "fuzz.txt"


def install_fuzzer() -> Path:
    """The command, installed beside the developers' packages where it is not there yet."""
    home = Path(sys.prefix) / "fuzzer"
    command = home / "bin" / "schemathesis"
    stamp = home / "pins"
    pins = hashlib.sha256(PINS.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == pins:
        return command
    shutil.rmtree(home, ignore_errors=True)
    _run(sys.executable, "-m", "venv", "--without-pip", str(home))
    python = str(home / "bin" / "python")
    uv = shutil.which("uv")
    install = [uv, "pip", "install", "--python", python] if uv else [sys.executable, "-m", "pip", "--python", python]
    if not uv:
        install += ["install", "--disable-pip-version-check", "--no-compile"]
    _run(*install, "--quiet", "--require-hashes", "--no-deps", "--only-binary", ":all:", "-r", str(PINS))
    stamp.write_text(pins)
    return command


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"


@dataclass(frozen=True, slots=True)
class Report:
    """What a run did and found."""

    printed: str
    exit_code: int
    cases: int
    statuses: Counter[tuple[str, int]]
    """How often each operation (``POST /v1/embeddings``) was answered with each status."""


async def fuzz(description: dict[str, Any], url: str, folder: Path, *options: str) -> Report:
    """Run the fuzzer of `install_fuzzer` with *options*; its files go to *folder*."""
    schema, events = folder / "openapi.json", folder / "events.ndjson"
    schema.write_text(json.dumps(description))
    process = await asyncio.create_subprocess_exec(
        str(await asyncio.to_thread(install_fuzzer)),
        *("run", str(schema), "--url", url, "--no-color", "--continue-on-failure"),
        *("--generation-database", "none", "--report", "ndjson", "--report-ndjson-path", str(events)),
        *options,
        cwd=folder,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        printed, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode is not None
    cases, statuses = await asyncio.to_thread(_count, events)
    return Report(printed.decode(), process.returncode, cases, statuses)


def _count(events: Path) -> tuple[int, Counter[tuple[str, int]]]:
    cases, statuses = 0, Counter[tuple[str, int]]()
    with events.open() as lines:
        for line in lines:
            if (scenario := json.loads(line).get("ScenarioFinished")) is None:
                continue
            recorder = scenario["recorder"]
            cases += len(recorder["interactions"])
            for case_id, interaction in recorder["interactions"].items():
                if (answer := interaction["response"]) is not None:
                    case = recorder["cases"][case_id]["value"]
                    statuses[f"{case['method']} {case['path']}", answer["status_code"]] += 1
    return cases, statuses
