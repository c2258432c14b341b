"""Every failure of a FastAPI route in the shape OpenAI clients read; never ``{"detail": …}``, never 422."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import iter_route_contexts
from starlette.exceptions import HTTPException
from starlette.routing import compile_path

from gateway.errors import GatewayError, InvalidJsonError, InvalidRequestError, MethodNotAllowedError, NotFoundError
from gateway.http.paths import GENERATION_PATHS, base_url, explain_not_found
from gateway.http.plain import as_gateway_error, error_answer, request_id_of
from gateway.storage.errors import StorageError


def add_error_handlers(app: FastAPI, fallback_host: str, other_paths: Sequence[str]) -> None:
    """Make *app* answer all its failures by itself; *other_paths* are those outside the API that exist."""

    async def validation_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return error_response(request, _from_validation(error))

    async def http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        path = request.url.path
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED or path in GENERATION_PATHS:
            allowed = ", ".join(_methods(request)) or "POST"
            message = f"{path} does not take {request.method}; it takes {allowed}."
            return error_response(request, MethodNotAllowedError(message, headers={"allow": allowed}))
        if error.status_code == HTTPStatus.NOT_FOUND:
            base = base_url(request.url.scheme, request.headers.get("host", ""), fallback_host)
            return error_response(request, NotFoundError(explain_not_found(request.method, path, base, other_paths)))
        return error_response(request, _from_status(error))

    async def any_other(request: Request, error: Exception) -> Response:
        return error_response(request, as_gateway_error(error, request.method, request.url.path))

    app.add_exception_handler(GatewayError, any_other)
    app.add_exception_handler(RequestValidationError, validation_error)
    app.add_exception_handler(HTTPException, http_error)
    app.add_exception_handler(StorageError, any_other)
    app.add_exception_handler(Exception, any_other)


def error_response(request: Request, error: GatewayError) -> Response:
    """The answer for *error*."""
    answer = error_answer(error, request.method, request_id_of(request.scope))
    return Response(answer.body, answer.status, dict(answer.headers))


def _methods(request: Request) -> list[str]:
    """What all the routes at the path of *request* take together."""
    path = request.url.path
    routes = [
        route for route in iter_route_contexts(request.app.routes) if compile_path(route.path or "")[0].match(path)
    ]
    return sorted({method for route in routes for method in route.methods or ()})


def _from_validation(error: RequestValidationError) -> InvalidRequestError:
    first = error.errors()[0]
    # The first part says where the value stands: body, query, path, header.
    param = ".".join(str(part) for part in first["loc"][1:]) or None
    if first["type"] == "json_invalid":
        return InvalidJsonError("The body is not valid JSON.")
    if first["type"] == "extra_forbidden":
        return InvalidRequestError(f"'{param}' is not known here; /openapi.json lists what is.", param=param)
    if param is None and first["type"] == "missing":
        return InvalidRequestError("The body is missing. Send a JSON object; /openapi.json shows its members.")
    if param is None:
        return InvalidRequestError("The body is not taken for JSON. Send it with 'Content-Type: application/json'.")
    return InvalidRequestError(f"{param}: {first['msg']}.", param=param)


def _from_status(error: HTTPException) -> GatewayError:
    kind = InvalidRequestError if error.status_code < HTTPStatus.INTERNAL_SERVER_ERROR else GatewayError
    return kind(str(error.detail))
