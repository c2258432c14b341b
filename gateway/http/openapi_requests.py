"""What the bodies and headers of generation requests may hold, for ``/openapi.json``.

The bounds are those that `gateway/data_plane/` enforces. What a provider may know besides is not listed and passes.
"""

from __future__ import annotations

from typing import Any, Final

from adapters.draft import Unsupported
from gateway.data_plane.unsupported import UNSUPPORTED_HEADER

Schema = dict[str, Any]


def _or_null(schema: Schema) -> Schema:
    """*schema*, or null, which counts as absent everywhere."""
    if isinstance(schema.get("type"), str):
        return {**schema, "type": [schema["type"], "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


def _number(low: float, high: float) -> Schema:
    return _or_null({"type": "number", "minimum": low, "maximum": high})


def _integer(low: int = -(2**63), high: int = 2**63 - 1) -> Schema:
    return _or_null({"type": "integer", "minimum": low, "maximum": high})


_NAME: Final[Schema] = {"type": "string", "minLength": 1, "maxLength": 256, "description": "One of GET /v1/models."}
_TEXT: Final = _or_null({"type": "string"})
_FLAG: Final = _or_null({"type": "boolean"})
_OBJECT: Final = _or_null({"type": "object"})
_TOKENS: Final[Schema] = {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1}
_TEXTS_OR_TOKENS: Final[Schema] = {
    "anyOf": [
        {"type": "string"},
        {"type": "array", "items": {"type": "string"}, "minItems": 1},
        _TOKENS,
        {"type": "array", "items": _TOKENS, "minItems": 1},
    ]
}
_STOP: Final = _or_null(
    {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "maxItems": 128}]}
)
_SAMPLING: Final[Schema] = {
    "temperature": _number(0, 2),
    "top_p": _number(0, 1),
    "frequency_penalty": _number(-2, 2),
    "presence_penalty": _number(-2, 2),
    "seed": _integer(),
    "n": _integer(1, 128),
    "max_tokens": _integer(1),
    "stop": _STOP,
    "stream": _FLAG,
    "stream_options": _or_null({"type": "object", "properties": {"include_usage": _FLAG}}),
    "logit_bias": _OBJECT,
    "user": _TEXT,
    "extra_body": {**_OBJECT, "description": "Its members are taken as if they stood beside it."},
}
_PART: Final[Schema] = {"anyOf": [{"type": "object"}, {"type": "string"}]}
"""A text by itself, as some clients send it, is put as a part where the target wants that."""
_AROUND: Final[Schema] = {
    "tool_calls": {"description": "A list of calls of the assistant's, each with 'id', 'type' and 'function'."},
    "tool_call_id": {"description": "The 'id' of the call that a message of the role tool answers; a text."},
    "name": {"description": "Who speaks, or which function has answered; a text."},
}
"""Without a type: what else these may hold is sent on, for the model's target to take or to refuse."""
_SAID: Final[Schema] = {
    "type": "object",
    "required": ["role"],
    "properties": {
        "role": {"enum": ["system", "developer", "user", "assistant"]},
        "content": _or_null({"anyOf": [{"type": "string"}, {"type": "array", "items": _PART}]}),
        **_AROUND,
    },
}
_RESULT: Final[Schema] = {
    "type": "object",
    "required": ["role"],
    "properties": {
        "role": {"enum": ["tool", "function"]},
        "content": {"description": "What is neither a text nor a list of parts is sent as JSON in a text."},
        **_AROUND,
    },
}
_MESSAGE: Final[Schema] = {
    "anyOf": [_SAID, _RESULT],
    "description": "What a message may hold is for the model's target to say.",
}

REQUESTS: Final[Schema] = {
    "ChatRequest": {
        "type": "object",
        "required": ["model", "messages"],
        "properties": {
            "model": _NAME,
            "messages": {"type": "array", "items": _MESSAGE, "minItems": 1},
            **_SAMPLING,
            "max_completion_tokens": _integer(1),
            "logprobs": _or_null({"anyOf": [{"type": "boolean"}, {"type": "integer", "minimum": 0, "maximum": 20}]}),
            "top_logprobs": _integer(0, 20),
            "tools": _or_null({"type": "array", "items": {"type": "object"}, "maxItems": 2048}),
            "tool_choice": _or_null({"anyOf": [{"type": "string"}, {"type": "object"}]}),
            "parallel_tool_calls": _FLAG,
            "response_format": _OBJECT,
            "metadata": _OBJECT,
            "store": _FLAG,
            "service_tier": _TEXT,
            "prompt_cache_key": _TEXT,
            "safety_identifier": _TEXT,
        },
    },
    "CompletionRequest": {
        "type": "object",
        "required": ["model", "prompt"],
        "properties": {
            "model": _NAME,
            "prompt": _TEXTS_OR_TOKENS,
            **_SAMPLING,
            "max_tokens": _integer(0),
            "logprobs": _integer(0, 20),
            "echo": _FLAG,
            "best_of": _integer(1, 20),
            "suffix": _TEXT,
        },
    },
    "EmbeddingsRequest": {
        "type": "object",
        "required": ["model", "input"],
        "properties": {
            "model": _NAME,
            "input": _TEXTS_OR_TOKENS,
            "dimensions": _integer(1),
            "encoding_format": {"enum": ["float", "base64", None]},
            "user": _TEXT,
        },
    },
}
"""The bodies, by the names of their components."""

HEADERS: Final[list[Schema]] = [
    {
        "name": "x-request-id",
        "in": "header",
        "description": "Names the request in logs and answers; one is made when it is left out or no safe text.",
        "schema": {"type": "string"},
    },
    {
        "name": UNSUPPORTED_HEADER.decode(),
        "in": "header",
        "description": "What is to be done about parameters that a target lacks; in place of the model's setting.",
        "schema": {"enum": [word.value for word in Unsupported]},
    },
    {
        "name": "x-gateway-timeout",
        "in": "header",
        "description": "The longest this request may take, in seconds.",
        "schema": {"type": "number", "exclusiveMinimum": 0, "maximum": 86_400},
    },
]
"""The headers that each generation request may carry beside its key."""
