"""How the battery is sent: patiently where it is asked to wait, and never telling the key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.catalog import Catalog
from gateway.probe.wire import wire_to
from gateway.settings import load_settings
from tests.fakes.simulated import Simulated, simulated

BODY = {"messages": [{"role": "user", "content": "Say exactly: yes"}]}


async def ask(folder: Path, running: Simulated, pauses: list[float], key: str | None = None, **more: Any) -> Any:
    """The answer to one chat, sent as the probe sends it."""
    path = folder / "c.yaml"
    settings = running.settings | ({"api_key": key} if key is not None else {})
    models = {"m": {"targets": [{"provider": "p", "model": running.model}]}}
    path.write_text(json.dumps({"providers": {"p": settings}, "models": models}))
    loaded = load_settings(path, environ={})
    catalog = Catalog.build(loaded)
    model = catalog.models["m"]

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    async with wire_to(loaded, catalog, model, model.targets[0], pause) as wire:
        return await wire.send(
            "POST", "/chat/completions", json.dumps({"model": running.model, **BODY, **more}).encode()
        )


async def test_too_many_requests_are_repeated_after_the_wait_that_is_asked_for(tmp_path: Path) -> None:
    pauses: list[float] = []
    async with simulated("groq", fault=fault("rate_limit=7"), fault_first=2) as groq:
        seen = await ask(tmp_path, groq, pauses)

    assert seen.text == "yes"
    assert pauses == [7.0, 7.0]


@pytest.mark.parametrize(
    ("told", "status", "tries"), [("rate_limit=7", 429, 4), ("status=503", 503, 2)], ids=["busy", "in trouble"]
)
async def test_a_provider_that_stays_so_is_left_alone_after_a_few_tries(
    tmp_path: Path, told: str, status: int, tries: int
) -> None:
    async with simulated("groq", fault=fault(told)) as groq:
        seen = await ask(tmp_path, groq, [])

    assert seen.status == status
    assert len(groq.requests) == tries


async def test_a_refusal_is_final(tmp_path: Path) -> None:
    pauses: list[float] = []
    async with simulated("groq") as groq:
        seen = await ask(tmp_path, groq, pauses, n=2)

    assert (seen.status, seen.refused, pauses) == (400, True, [])


async def test_a_key_that_is_repeated_in_an_answer_is_blotted_out(tmp_path: Path) -> None:
    async with simulated("groq") as groq:
        seen = await ask(
            tmp_path, groq, [], user="zz", messages=[{"role": "user", "content": f"Say exactly: {groq.key}"}]
        )

    assert seen.text == "***"


def fault(text: str) -> Any:
    from adapters.simulator.faults import Fault

    return Fault.parse(text)
