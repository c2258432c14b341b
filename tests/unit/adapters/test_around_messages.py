"""What is sent around the messages is told beforehand only where it does not depend on them, for every provider."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from adapters.adapter import Adapter
from adapters.registry import load_spec, preset_types, provider_types
from adapters.target import Target
from adapters.types import Body, Operation

FIRST = [{"role": "user", "content": "hi"}]
OTHERS: list[Any] = [
    [{"role": "system", "content": "a"}, {"role": "user", "content": "b"}, {"role": "system", "content": "c"}],
    [{"role": "developer", "content": "a"}, {"role": "user", "content": "b", "name": "n"}],
    [{"role": "user", "content": [{"type": "text", "text": "a"}]}, {"role": "user", "content": "b"}],
    [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": {}}]},
        {"role": "tool", "tool_call_id": "c", "content": "d"},
        {"role": "assistant", "content": "prefill"},
    ],
    [{"role": "user", "content": "a" * 40_000}],
    [17, None],
]
PARAMETERS: list[dict[str, Any]] = [
    {},
    {"temperature": 0.7, "max_tokens": 64, "user": "u"},
    {"max_completion_tokens": 10_000_000, "logprobs": True, "n": 2},
    {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]},
    {"functions": [{"name": "f"}], "stop": ["a"]},
    {"stream": True, "stream_options": {"include_usage": False}},
    {"response_format": {"type": "json_object"}, "seed": 1, "made_up": [1]},
]


def _body(messages: Any, parameters: dict[str, Any]) -> Body:
    members = {"model": "m", "messages": messages, **parameters}
    return {name: msgspec.Raw(json.dumps(value).encode()) for name, value in members.items()}


@pytest.mark.parametrize("provider", [*provider_types(), *preset_types()])
def test_any_messages_are_sent_as_by_preparing_them(provider: str) -> None:
    adapter = Adapter(Target("p/m", provider, "m", load_spec(provider), context_window=5000))
    for parameters in PARAMETERS:
        stream = "stream" in parameters
        around = adapter.around(_body(FIRST, parameters), Operation.CHAT, stream)
        if around is None:
            continue
        for messages in OTHERS:
            body = _body(messages, parameters)
            prepared = adapter.prepare(body, Operation.CHAT, stream)
            assert prepared.body == around[0] + bytes(body["messages"]) + around[1]
            assert (prepared.adjustments, prepared.shape, prepared.needs, prepared.lossy) == ((), None, None, False)


def test_a_usual_request_is_told_beforehand() -> None:
    adapter = Adapter(Target("p/m", "p", "their-model", load_spec("openai_compatible")))

    around = adapter.around(_body(FIRST, {"temperature": 0.5}), Operation.CHAT, False)

    assert around == (b'{"model":"their-model","messages":', b',"temperature":0.5}')
