"""Makes the OpenAPI description whole: the hot routes, which FastAPI never sees, the errors, and who may use what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fastapi import FastAPI

from gateway.data_plane.endpoint import Endpoint
from gateway.data_plane.plane import ENDPOINTS
from gateway.http.openapi_answers import ANSWERS, reference
from gateway.http.openapi_requests import HEADERS, REQUESTS
from gateway.scopes import Scope
from gateway.telemetry.series import CONTENT_TYPE

Schema = dict[str, Any]

_GENERATION: Final = {
    "/chat/completions": ("Chat completion", "ChatRequest", "ChatCompletion"),
    "/completions": ("Text completion", "CompletionRequest", "TextCompletion"),
    "/embeddings": ("Embeddings", "EmbeddingsRequest", "Embeddings"),
}
"""Summary, body and answer of each endpoint of the data plane."""

_CREDENTIALS: Final[Schema] = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "x-api-key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
    "api-key": {"type": "apiKey", "in": "header", "name": "api-key"},
}
_SCOPES_IN_WORDS: Final = {
    Scope.PUBLIC: "Open to everybody.",
    Scope.KEY: "Needs a key made by `gateway keys create`.",
    Scope.ADMIN: "Needs the admin key.",
}


def with_generation_paths(app: FastAPI, scopes: Mapping[str, Scope]) -> None:
    """Make ``/openapi.json`` of *app* tell all there is; *scopes* says who may use each route of *app* itself."""
    of_fastapi = app.openapi

    def openapi() -> Schema:
        if app.openapi_schema is None:
            app.openapi_schema = _complete(of_fastapi(), scopes)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]  # the way FastAPI's documentation extends a schema


def _complete(schema: Schema, scopes: Mapping[str, Scope]) -> Schema:
    components = schema.setdefault("components", {})
    components["securitySchemes"] = _CREDENTIALS
    components.setdefault("schemas", {}).update({**REQUESTS, **ANSWERS})
    # FastAPI's own errors, which no route answers with.
    for unused in ("HTTPValidationError", "ValidationError"):
        components["schemas"].pop(unused, None)

    by_plain_path = {path.replace(":path}", "}"): scope for path, scope in scopes.items()}
    for path, operations in schema["paths"].items():
        for operation in operations.values():
            _tell_scope(operation, by_plain_path[path])
            operation["responses"].pop("422", None)
            operation["responses"] |= {"4XX": _error(), "5XX": _error()}
    for path, responses in _plain_answers().items():
        if path in schema["paths"]:
            schema["paths"][path]["get"]["responses"] |= responses
    for endpoint in ENDPOINTS:
        schema["paths"]["/v1" + endpoint.path] = {"post": _generation(endpoint)}
    return schema


def _generation(endpoint: Endpoint) -> Schema:
    summary, body, answer = _GENERATION[endpoint.path]
    content = {"application/json": {"schema": reference(answer)}}
    if answer != "Embeddings":
        # Without a schema: readers disagree on whether it would be one of the body or of each event.
        content["text/event-stream"] = {}
    operation: Schema = {
        "summary": summary,
        "operationId": endpoint.operation.value,
        "tags": ["generation"],
        "parameters": HEADERS,
        "requestBody": {"required": True, "content": {"application/json": {"schema": reference(body)}}},
        "responses": {
            "200": {"description": "The answer; with `stream: true`, as server-sent events.", "content": content},
            "4XX": _error(),
            "5XX": _error(),
        },
    }
    _tell_scope(operation, endpoint.scope)
    return operation


def _tell_scope(operation: Schema, scope: Scope) -> None:
    told = _SCOPES_IN_WORDS[scope]
    operation["description"] = f"{operation['description']}\n\n{told}" if "description" in operation else told
    operation["x-scope"] = scope.value
    # Any one of them will do.
    operation["security"] = [] if scope is Scope.PUBLIC else [{name: []} for name in _CREDENTIALS]


def _plain_answers() -> Mapping[str, Schema]:
    """What the routes answer that FastAPI knows no model of."""
    not_modified = {"description": "`if-none-match` names what would be answered."}
    return {
        "/v1/models": {"200": _json("What this key may use", "ModelList"), "304": not_modified},
        "/v1/models/{model_id}": {"200": _json("The model", "Model"), "304": not_modified},
        "/health/live": {"200": _json("The event loop turns", "Alive")},
        "/health/ready": {
            "200": _json("A request would be served", "Health"),
            "503": _json("Why none would be", "Health"),
        },
        "/metrics": {
            "200": {
                "description": "Prometheus' text format",
                "content": {CONTENT_TYPE.partition(";")[0]: {"schema": {"type": "string"}}},
            }
        },
    }


def _error() -> Schema:
    return _json("What went wrong", "Error")


def _json(description: str, schema: str) -> Schema:
    return {"description": description, "content": {"application/json": {"schema": reference(schema)}}}
