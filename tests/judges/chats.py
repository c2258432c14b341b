"""Chats as clients of OpenAI's send them, with everything that providers are known to differ in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

Chat = Mapping[str, Any]

SAY: Final = [{"role": "user", "content": "Say exactly: the sea is calm"}]
CALL: Final = [{"role": "user", "content": 'Call tool get_weather with {"city": "Paris"}'}]
TOOL: Final = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Tells the weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
_SCHEMA: Final = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}
IN_SCHEMA: Final = {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": _SCHEMA}}
_PAST_CALL: Final = {
    "id": "call_0000001",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'},
}
_CALLING: Final = {"role": "assistant", "content": None, "tool_calls": [_PAST_CALL]}
_NAMED: Final = {"type": "function", "function": {"name": "get_weather"}}
_RESULT: Final = {"role": "tool", "tool_call_id": "call_0000001", "content": "rain"}


def _after(**assistant: Any) -> list[dict[str, Any]]:
    return [*SAY, {"role": "assistant", "content": "ok", **assistant}, *SAY]


CHATS: Final[Mapping[str, Chat]] = {
    "plain": {"messages": SAY},
    "streamed": {"messages": SAY, "stream": True},
    "streamed with usage": {"messages": SAY, "stream": True, "stream_options": {"include_usage": True}},
    "system": {"messages": [{"role": "system", "content": "Be brief."}, *SAY]},
    "developer": {"messages": [{"role": "developer", "content": "Be brief."}, *SAY]},
    "named speaker": {"messages": [{**SAY[0], "name": "ada"}]},
    "text parts": {"messages": [{"role": "user", "content": [{"type": "text", "text": "Say exactly: yes"}]}]},
    "past reasoning": {"messages": _after(reasoning_content="Hm.")},
    "past nulls": {"messages": _after(function_call=None, tool_calls=None)},
    "past call": {"messages": [*CALL, _CALLING, _RESULT], "tools": [TOOL]},
    "max_tokens": {"messages": SAY, "max_tokens": 3},
    "max_completion_tokens": {"messages": SAY, "max_completion_tokens": 3},
    "sampling": {"messages": SAY, "temperature": 0.5, "top_p": 0.9, "seed": 7},
    "penalties": {"messages": SAY, "frequency_penalty": 0.5, "presence_penalty": 0.5},
    "one stop": {"messages": SAY, "stop": "calm"},
    "six stops": {"messages": SAY, "stop": ["a1", "a2", "a3", "a4", "a5", "calm"]},
    "two answers": {"messages": SAY, "n": 2},
    "logprobs": {"messages": SAY, "logprobs": True, "top_logprobs": 2},
    "logit_bias": {"messages": SAY, "logit_bias": {"1000": 1}},
    "tools": {"messages": CALL, "tools": [TOOL]},
    "streamed tools": {"messages": CALL, "tools": [TOOL], "stream": True},
    "tool required": {"messages": SAY, "tools": [TOOL], "tool_choice": "required"},
    "tool by name": {"messages": SAY, "tools": [TOOL], "tool_choice": _NAMED},
    "one call at most": {"messages": CALL, "tools": [TOOL], "parallel_tool_calls": False},
    "json": {"messages": [{"role": "user", "content": "Answer in JSON."}], "response_format": {"type": "json_object"}},
    "schema": {"messages": SAY, "response_format": IN_SCHEMA},
    "schema with tools": {"messages": SAY, "tools": [TOOL], "response_format": IN_SCHEMA},
    "streamed schema": {"messages": SAY, "response_format": IN_SCHEMA, "stream": True},
    "effort": {"messages": SAY, "reasoning_effort": "low"},
    "effort minimal": {"messages": SAY, "reasoning_effort": "minimal"},
    "user": {"messages": SAY, "user": "u-1"},
    "service tier": {"messages": SAY, "service_tier": "default"},
    "cache key": {"messages": SAY, "prompt_cache_key": "k-1"},
}  # fmt: skip
