"""Every failure of a FastAPI route in the shape OpenAI clients read; never ``{"detail": …}``, never 422."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from http import HTTPStatus

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import iter_route_contexts
from starlette.exceptions import HTTPException
from starlette.routing import compile_path

from gateway.data_plane.errors import error_body, error_headers
from gateway.errors import GatewayError, InvalidJsonError, InvalidRequestError, MethodNotAllowedError, NotFoundError
from gateway.http.paths import GENERATION_PATHS, base_url, explain_not_found
from gateway.http.request_ids import request_id_of
from gateway.storage.errors import StorageError, StorageUnavailableError
from gateway.telemetry.redact import mask

_log = logging.getLogger(__name__)


class StorageFailedError(GatewayError):
    """The database did what it should not."""

    status = 500
    code = "storage_error"


class StorageAwayError(GatewayError):
    """The database does not answer; trying again later helps."""

    status = 503
    code = "storage_unavailable"


def add_error_handlers(app: FastAPI, fallback_host: str, other_paths: Sequence[str]) -> None:
    """Make *app* answer all its failures by itself; *other_paths* are those outside the API that exist."""

    async def gateway_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, GatewayError)
        return error_response(request, error)

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

    async def storage_error(request: Request, error: Exception) -> Response:
        kind = StorageAwayError if isinstance(error, StorageUnavailableError) else StorageFailedError
        return error_response(request, kind(mask(str(error))))

    async def unexpected(request: Request, error: Exception) -> Response:
        _log.error("a request met a bug: %s %s", request.method, request.url.path, exc_info=error)
        return error_response(request, GatewayError("The gateway met an error of its own; its log has the details."))

    app.add_exception_handler(GatewayError, gateway_error)
    app.add_exception_handler(RequestValidationError, validation_error)
    app.add_exception_handler(HTTPException, http_error)
    app.add_exception_handler(StorageError, storage_error)
    app.add_exception_handler(Exception, unexpected)


def error_response(request: Request, error: GatewayError) -> Response:
    """The answer for *error*."""
    request_id = request_id_of(request.scope)
    lines = error_headers(error, request_id).decode("latin-1").split("\r\n")[:-1]
    headers = dict(line.split(": ", 1) for line in lines)
    body = b"" if request.method == "HEAD" else error_body(error, request_id)
    return Response(body, error.status, headers)


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
    return InvalidRequestError(f"{param or 'The request'}: {first['msg']}.", param=param)


def _from_status(error: HTTPException) -> GatewayError:
    kind = InvalidRequestError if error.status_code < HTTPStatus.INTERNAL_SERVER_ERROR else GatewayError
    return kind(str(error.detail))
