"""schemathesis, run against a gateway, and what it reported."""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Report:
    """What a run did and found."""

    printed: str
    exit_code: int
    cases: int
    statuses: Counter[tuple[str, int]]
    """How often each operation (``POST /v1/embeddings``) was answered with each status."""


async def fuzz(command: Path, description: dict[str, Any], url: str, folder: Path, *options: str) -> Report:
    """Run schemathesis, which is *command*, with *options*; its files go to *folder*."""
    schema, events = folder / "openapi.json", folder / "events.ndjson"
    schema.write_text(json.dumps(description))
    process = await asyncio.create_subprocess_exec(
        str(command),
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
            interactions = recorder.get("interactions", {})  # a scenario that was skipped has none
            cases += len(interactions)
            for case_id, interaction in interactions.items():
                if (answer := interaction["response"]) is not None:
                    case = recorder["cases"][case_id]["value"]
                    statuses[f"{case['method']} {case['path']}", answer["status_code"]] += 1
    return cases, statuses
