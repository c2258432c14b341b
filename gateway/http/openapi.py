"""Adds the hot routes, which FastAPI never sees, to the OpenAPI description it makes of its own."""

from __future__ import annotations

from typing import Any, Final

from fastapi import FastAPI

_GENERATION: Final = {
    "/v1/chat/completions": ("Chat completion", ["model", "messages"]),
    "/v1/completions": ("Text completion", ["model", "prompt"]),
    "/v1/embeddings": ("Embeddings", ["model", "input"]),
}
_ERROR: Final = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "code", "param"],
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "code": {"type": ["string", "null"]},
                "param": {"type": ["string", "null"]},
                "request_id": {"type": "string"},
                "provider": {"type": "string"},
                "upstream_status": {"type": "integer"},
            },
        }
    },
}


def with_generation_paths(app: FastAPI) -> None:
    """Make ``/openapi.json`` of *app* whole: bodies are OpenAI's, so only what every one of them needs is listed."""
    of_fastapi = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = of_fastapi()
            schema.setdefault("components", {}).setdefault("securitySchemes", {})["key"] = {
                "type": "http",
                "scheme": "bearer",
            }
            schema["components"].setdefault("schemas", {})["Error"] = _ERROR
            for path, (summary, required) in _GENERATION.items():
                schema["paths"][path] = {"post": _operation(summary, required)}
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]  # the way FastAPI's documentation extends a schema


def _operation(summary: str, required: list[str]) -> dict[str, Any]:
    body = {"type": "object", "required": required, "properties": {"model": {"type": "string"}}}
    error = {"description": "What went wrong", "content": {"application/json": {"schema": _reference("Error")}}}
    return {
        "summary": summary,
        "tags": ["generation"],
        "security": [{"key": []}],
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": {
            "200": {
                "description": "The answer, as a whole or with `stream: true` as server-sent events",
                "content": {"application/json": {}, "text/event-stream": {}},
            },
            "4XX": error,
            "5XX": error,
        },
    }


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}
