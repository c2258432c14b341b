"""What the battery sends: for each parameter a value that asks for something, as small as it can be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

Fragment = dict[str, Any]

SMALL: Final = 16
"""Tokens of an answer that only has to come."""
ROOM: Final = 160
"""Tokens of an answer whose text matters; models that think first need them."""

OK: Final = "Say exactly: ok"
TOOL: Final = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Tells the weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
CALL: Final = 'Call tool get_weather with {"city": "Paris"}'
TWO_CALLS: Final = f'{CALL}\nCall tool get_weather with {{"city": "Rome"}}'
SCHEMA: Final = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}
IN_JSON: Final = f'{OK}\n(In JSON that is {{"answer": "ok"}}.)'
PIXEL: Final = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def user(text: str = OK) -> dict[str, Any]:
    return {"role": "user", "content": text}


def named(name: str = "get_weather") -> dict[str, Any]:
    """The choice of one tool."""
    return {"type": "function", "function": {"name": name}}


def schema_format(schema: Mapping[str, Any] = SCHEMA, **more: Any) -> dict[str, Any]:
    """A response format as OpenAI takes it."""
    holder = {"name": "reply", "schema": schema, "strict": True} | more
    return {"type": "json_schema", "json_schema": {key: value for key, value in holder.items() if value is not None}}


USES: Final[Mapping[str, Fragment]] = {
    "frequency_penalty": {"frequency_penalty": 0.5},
    "logit_bias": {"logit_bias": {"10": 1}},  # a token of any vocabulary: beyond its end, an engine may crash
    "logprobs": {"logprobs": True},
    "max_completion_tokens": {"max_completion_tokens": 3},
    "max_tokens": {"max_tokens": 3},
    "metadata": {"metadata": {"probe": "1"}},
    "modalities": {"modalities": ["text", "audio"]},
    "n": {"n": 2},
    "parallel_tool_calls": {"parallel_tool_calls": False},
    "prediction": {"prediction": {"type": "content", "content": "ok"}},
    "presence_penalty": {"presence_penalty": 0.5},
    "prompt_cache_key": {"prompt_cache_key": "probe"},
    "reasoning_effort": {"reasoning_effort": "low"},
    "response_format.json_object": {"response_format": {"type": "json_object"}},
    "response_format.json_schema": {"response_format": schema_format()},
    "response_format.text": {"response_format": {"type": "text"}},
    "safety_identifier": {"safety_identifier": "probe"},
    "seed": {"seed": 7},
    "service_tier": {"service_tier": "auto"},
    "stop": {"stop": ["gamma"]},
    "store": {"store": True},
    "stream": {"stream": True},
    "stream_options.include_usage": {"stream": True, "stream_options": {"include_usage": True}},
    "temperature": {"temperature": 0.5},
    "tool_choice": {"tool_choice": "auto"},
    "tools": {"tools": [TOOL]},
    "top_logprobs": {"top_logprobs": 1},
    "top_p": {"top_p": 0.9},
    "user": {"user": "probe"},
    "verbosity": {"verbosity": "low"},
    "web_search_options": {"web_search_options": {}},
}
"""A use of each parameter; those that are missing have no form that could be told beforehand."""

COMPANIONS: Final[Mapping[str, str]] = {
    "top_logprobs": "logprobs",
    "tool_choice": "tools",
    "parallel_tool_calls": "tools",
}
"""Parameters that mean nothing alone."""

PROMPTS: Final[Mapping[str, tuple[str, int]]] = {
    "max_completion_tokens": ("Count to 50", 3),
    "max_tokens": ("Count to 50", 3),
    "parallel_tool_calls": (TWO_CALLS, ROOM),
    "response_format.json_object": (IN_JSON, ROOM),
    "response_format.json_schema": (OK, ROOM),
    "stop": ("Say exactly: alpha beta gamma delta", ROOM),
    "tools": (CALL, ROOM),
}
"""What shows whether a parameter has an effect, and how many tokens that takes."""

PATCHES: Final[Mapping[str, str]] = {
    "logit_bias": "error",
    "logprobs": "error",
    "modalities": "error",
    "n": "fan_out",
    "parallel_tool_calls": "keep_first_call",
    "response_format.json_schema": "emulate_schema",
    "stop": "client_side_stop",
    "stream": "fake_stream",
    "tool_choice": "emulate_forced_tool",
    "tools": "emulate_tools",
    "top_logprobs": "error",
    "web_search_options": "error",
}
"""What the gateway does about one that a provider turns out not to have; the rest is left out."""
