"""A model that makes no calls says nothing of a parameter for calls, but the length of its prompt does."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from adapters.registry import load_spec
from adapters.simulator.engine import Simulator
from adapters.simulator.options import Options
from gateway.probe.battery import probe, simulation
from gateway.probe.finding import Finding, Verdict
from gateway.probe.seen import Seen
from tests.unit.probe.playing import target_of

BARE_TOKENS = 20


async def found_of_tools(usage_with_tools: dict[str, Any], finish_reason: str) -> Finding:
    """What is found where tools are taken, and the model answers in words."""
    spec = load_spec("llama_cpp_server")
    target = target_of(spec)
    ask = simulation(target, Simulator(spec, Options(models=(target.model,))))

    async def send(method: str, path: str, body: bytes) -> Seen:
        seen = await ask(method, path, body)
        asked = json.loads(body)
        if seen.status != 200 or asked.get("stream") is True:
            return seen
        words = {"index": 0, "message": {"role": "assistant", "content": "I do."}, "finish_reason": finish_reason}
        usage = usage_with_tools if asked.get("tools") else {"prompt_tokens": BARE_TOKENS}
        return replace(seen, body=json.dumps({**json.loads(seen.body), "choices": [words], "usage": usage}).encode())

    return next(one for one in await probe(target, send, wanted=["params.tools"]) if one.fact == "params.tools")


@pytest.mark.parametrize("finish_reason", ["stop", "length"])
async def test_tools_that_were_shown_to_it_are_taken(finish_reason: str) -> None:
    found = await found_of_tools({"prompt_tokens": BARE_TOKENS + 50}, finish_reason)

    assert (found.verdict, found.seen) == (Verdict.HOLDS, "taken")


@pytest.mark.parametrize("finish_reason", ["stop", "length"])
async def test_tools_that_never_reached_it_are_without_effect(finish_reason: str) -> None:
    found = await found_of_tools({"prompt_tokens": BARE_TOKENS}, finish_reason)

    assert (found.verdict, found.seen) == (Verdict.DIFFERS, "taken, without effect")


@pytest.mark.parametrize(("finish_reason", "verdict"), [("stop", Verdict.DIFFERS), ("length", Verdict.HOLDS)])
async def test_where_nobody_counts_the_answer_alone_speaks(finish_reason: str, verdict: Verdict) -> None:
    assert (await found_of_tools({}, finish_reason)).verdict is verdict
