"""A simulated provider answers any JSON: a gateway's mistake is to be told by a refusal, not by a traceback."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

import pytest

from adapters.types import Operation
from tests.unit.adapters.simulator.asking import PROVIDERS, ask, simulator

NONSENSE: list[Any] = [None, True, 0, -1, 2**63, 1e308, "", "x", [], ["x"], [[]], [{}], {}, {"type": []}, {"type": "x"}]

CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
TOOL = {
    "type": "function",
    "function": {
        "name": "look",
        "strict": True,
        "parameters": {"type": "object", "properties": {"a": {"type": "string"}}},
    },
}
CHAT: dict[str, Any] = {
    "messages": [
        {"role": "system", "content": [{"type": "text", "text": "Be brief."}]},
        {
            "role": "user",
            "name": "ann",
            "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,aa"}}],
        },
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": "seen"},
        {"role": "user", "content": "And?"},
    ],
    "tools": [TOOL],
    "tool_choice": {"type": "function", "function": {"name": "look"}},
    "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}},
    "stop": ["a"],
    "logit_bias": {"1": 1},
    "logprobs": True,
    "top_logprobs": 1,
    "n": 1,
    "max_tokens": 2,
    "max_completion_tokens": 2,
    "stream": False,
    "stream_options": {"include_usage": True},
    "temperature": 0,
    "top_p": 1,
    "seed": 1,
    "reasoning_effort": "low",
    "user": "u",
    "metadata": {"a": "b"},
}
BODIES: dict[Operation, dict[str, Any]] = {
    Operation.CHAT: CHAT,
    Operation.COMPLETIONS: {"prompt": ["a"], "stop": "b", "logprobs": 1, "n": 1, "echo": True, "max_tokens": 2},
    Operation.EMBEDDINGS: {"input": ["a", "b"], "dimensions": 2, "encoding_format": "base64"},
}


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every list or object within *value*, with an index or a name in it."""
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from places(value[key])


def nonsense(body: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """*body* without some of its members, and with nonsense in one or two places."""
    body = copy.deepcopy({name: value for name, value in body.items() if chance.random() < 0.6})
    for _ in range(chance.randint(1, 2)):
        found = list(places(body))
        if found:
            holder, key = chance.choice(found)
            holder[key] = copy.deepcopy(chance.choice(NONSENSE))
    return body


@pytest.mark.parametrize("provider", PROVIDERS)
def test_nonsense_is_answered_or_refused(provider: str) -> None:
    simulated, chance = simulator(provider), random.Random(provider)
    for operation, body in BODIES.items():
        if not simulated.spec.endpoints[operation].available:
            continue
        for _ in range(300):
            asked = nonsense(body, chance)
            try:
                heard = ask(simulated, operation, **asked)
            except Exception as error:
                raise AssertionError(f"{type(error).__name__} at {asked}") from error
            assert heard.status == 200 or heard.json


@pytest.mark.parametrize("member", ["tools", "messages"])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_nonsense_alone_is_answered_or_refused(provider: str, member: str) -> None:
    """With nothing beside it that might be refused first."""
    simulated = simulator(provider)
    if not simulated.spec.endpoints[Operation.CHAT].available:
        return
    for nothing in NONSENSE:
        for several in ([nothing], [nothing, CHAT[member][-1]], [CHAT[member][-1], nothing]):
            asked: dict[str, Any] = {"messages": [CHAT["messages"][-1]], member: several}
            heard = ask(simulated, Operation.CHAT, **asked)
            assert heard.status == 200 or heard.json
