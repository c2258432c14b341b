"""What answers hold, for ``/openapi.json``: only what a client can rely on; providers add members of their own."""

from __future__ import annotations

from typing import Any, Final

Schema = dict[str, Any]


def reference(name: str) -> Schema:
    """The component called *name*."""
    return {"$ref": f"#/components/schemas/{name}"}


_TEXT: Final[Schema] = {"type": "string"}
_WHOLE: Final[Schema] = {"type": "integer"}
_COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
_TEXT_OR_NULL: Final[Schema] = {"type": ["string", "null"]}
_TEXTS: Final[Schema] = {"type": "array", "items": _TEXT}


def _object(required: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    return {"type": "object", "required": list(required), "properties": {**required, **(optional or {})}}


def _list_of(item: Schema, least: int = 0) -> Schema:
    return {"type": "array", "items": item, **({"minItems": least} if least else {})}


_TOOL_CALL: Final = _object({"id": _TEXT, "type": _TEXT, "function": _object({"name": _TEXT, "arguments": _TEXT})})
_CHOICE: Final = _object(
    {
        "index": _COUNT,
        "message": _object(
            {"role": {"const": "assistant"}},
            {"content": _TEXT_OR_NULL, "tool_calls": _list_of(_TOOL_CALL), "reasoning_content": _TEXT_OR_NULL},
        ),
        "finish_reason": {"enum": ["stop", "length", "tool_calls", "content_filter", "function_call"]},
    }
)
_TEXT_CHOICE: Final = _object({"index": _COUNT, "text": _TEXT, "finish_reason": _TEXT_OR_NULL})
_GENERATED: Final[dict[str, Schema]] = {"id": _TEXT, "created": _WHOLE, "model": _TEXT}
_USAGE: Final[dict[str, Schema]] = {"usage": {"anyOf": [reference("Usage"), {"type": "null"}]}}

ANSWERS: Final[Schema] = {
    "Error": _object(
        {
            "error": _object(
                {"message": _TEXT, "type": _TEXT, "code": _TEXT_OR_NULL, "param": _TEXT_OR_NULL, "request_id": _TEXT},
                {"provider": _TEXT, "upstream_status": _WHOLE},
            )
        }
    ),
    "Usage": _object({"prompt_tokens": _COUNT, "total_tokens": _COUNT}, {"completion_tokens": _COUNT}),
    "ChatCompletion": _object(
        {"object": {"const": "chat.completion"}, **_GENERATED, "choices": _list_of(_CHOICE, 1)}, _USAGE
    ),
    "TextCompletion": _object(
        {"object": {"const": "text_completion"}, **_GENERATED, "choices": _list_of(_TEXT_CHOICE, 1)}, _USAGE
    ),
    "Embeddings": _object(
        {
            "object": {"const": "list"},
            "model": _TEXT,
            "data": _list_of(
                _object(
                    {
                        "object": {"const": "embedding"},
                        "index": _COUNT,
                        "embedding": {"anyOf": [_list_of({"type": "number"}), _TEXT]},
                    }
                )
            ),
        },
        _USAGE,
    ),
    "Model": _object(
        {
            "id": _TEXT,
            "object": {"const": "model"},
            "created": _WHOLE,
            "owned_by": _TEXT,
            "display_name": _TEXT,
            "context_length": {"type": ["integer", "null"]},
            "max_output_tokens": {"type": ["integer", "null"]},
            "architecture": _object({"input_modalities": _TEXTS, "output_modalities": _TEXTS}),
            "supported_parameters": _TEXTS,
            "expiration_date": _TEXT_OR_NULL,
        },
        {
            "pricing": _object({"prompt": _TEXT, "completion": _TEXT}, {"input_cache_read": _TEXT}),
            "gateway": {"type": "object", "description": "Where it leads; for the operator alone."},
        },
    ),
    "ModelList": _object(
        {
            "object": {"const": "list"},
            "data": _list_of(reference("Model")),
            "has_more": {"const": False},
            "first_id": _TEXT_OR_NULL,
            "last_id": _TEXT_OR_NULL,
        },
        {"models": _list_of({"type": "object"})},
    ),
    "Alive": _object({"status": {"const": "alive"}}),
    "Health": _object(
        {
            "status": {"enum": ["ready", "degraded", "not ready"]},
            "checks": {
                "type": "object",
                "additionalProperties": _object({"ok": {"type": "boolean"}}, {"state": _TEXT, "reason": _TEXT}),
            },
        }
    ),
}
"""The answers, by the names of their components."""
