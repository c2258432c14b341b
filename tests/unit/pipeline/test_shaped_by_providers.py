"""Requests that need a shape, at every provider that its file makes us play."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from adapters.registry import load_spec, provider_types
from adapters.shapes.compile import compile_shapes
from adapters.types import Operation
from tests.fakes.gateway import running_gateway
from tests.fakes.openai_answers import payloads
from tests.fakes.raw_client import Answer
from tests.fakes.shapes import AS_PERSON, LOOK, WAIT
from tests.fakes.simulated import simulated

GPT_OSS = "gpt-oss-120b"
# What the gateway starts by itself is played by none.
OWN_CHILDREN = ("local", "litellm_bridge")
LACKING = [
    name
    for name in provider_types()
    if name not in OWN_CHILDREN
    and (endpoint := (spec := load_spec(name)).endpoints.get(Operation.CHAT)) is not None
    and endpoint.available
    and compile_shapes(spec, name, model=GPT_OSS)
]
ASKING = [{"role": "user", "content": "Who are you?"}]
BY_NAME = {"type": "function", "function": {"name": "look"}}
ASKED: dict[str, dict[str, Any]] = {
    "choices": {"n": 3},
    "schema": {"response_format": AS_PERSON},
    "json": {"response_format": {"type": "json_object"}},
    "tools-and-schema": {"tools": [LOOK], "response_format": AS_PERSON},
    "required": {"tools": [LOOK, WAIT], "tool_choice": "required"},
    "named": {"tools": [LOOK, WAIT], "tool_choice": BY_NAME},
}


def choices_of(answer: Answer, streamed: bool) -> list[dict[str, Any]]:
    """The message of each choice: its content, and the names of its calls."""
    if not streamed:
        found = {choice["index"]: choice["message"] for choice in answer.json["choices"]}
    else:
        found = {}
        for choice in itertools.chain.from_iterable(one["choices"] for one in payloads(answer.body)[:-1]):
            message = found.setdefault(choice["index"], {"content": "", "tool_calls": []})
            message["content"] += choice["delta"].get("content") or ""
            message["tool_calls"] += choice["delta"].get("tool_calls") or []
    return [found[index] for index in sorted(found)]


def names_of(message: dict[str, Any]) -> set[str]:
    calls = message.get("tool_calls") or ()
    return {call["function"]["name"] for call in calls if call["function"].get("name")}


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("provider", LACKING)
async def test_a_provider_gets_nothing_it_refuses_and_the_client_what_it_asked_for(
    provider: str, asked: str, streamed: bool
) -> None:
    async with simulated(provider) as upstream:
        settings = {
            "providers": {"p": upstream.settings},
            "models": {"m": {"targets": [{"provider": "p", "model": upstream.model}], "retries": {"attempts": 1}}},
        }
        async with running_gateway(settings) as gateway:
            answer = await gateway.chat(messages=ASKING, **ASKED[asked], stream=streamed)

    assert answer.status == 200, (answer.body, upstream.refusals)
    assert not upstream.refusals
    if streamed:
        assert payloads(answer.body)[-1] == "[DONE]", answer.body
    messages = choices_of(answer, streamed)
    assert len(messages) == ASKED[asked].get("n", 1)
    (first, *_) = messages
    if asked == "schema" or (asked == "tools-and-schema" and not names_of(first)):
        assert set(json.loads(first["content"])) == {"name", "age"}
    elif asked == "json":
        assert isinstance(json.loads(first["content"]), dict)
    elif asked == "named":
        assert names_of(first) == {"look"}
    elif asked == "required":
        assert names_of(first)
