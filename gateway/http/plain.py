"""Requests and answers as they are without a web framework, and the errors of both worlds as one answer."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl

from gateway.data_plane.errors import error_body, error_headers
from gateway.errors import GatewayError
from gateway.request_id import request_id_of as id_in_headers
from gateway.storage.errors import StorageError, StorageUnavailableError
from gateway.telemetry.redact import mask

Scope = MutableMapping[str, Any]
Headers = Sequence[tuple[bytes, bytes]]

_ID_KEY: Final = "request_id"

_log = logging.getLogger(__name__)


class StorageFailedError(GatewayError):
    """The database did what it should not."""

    status = 500
    code = "storage_error"


class StorageAwayError(GatewayError):
    """The database does not answer; trying again later helps."""

    status = 503
    code = "storage_unavailable"


@dataclass(frozen=True, slots=True)
class Asked:
    """A request without a body."""

    headers: Headers
    """Names in lower case."""
    query: Mapping[str, str]
    rest: str = ""
    """What of the path stands in the place of the page's parameter."""

    @classmethod
    def of(cls, scope: Scope, rest: str = "") -> Asked:
        """The request of an ASGI scope."""
        text = scope.get("query_string", b"").decode("latin-1")
        return cls(scope["headers"], dict(parse_qsl(text, keep_blank_values=True)), rest)

    def header(self, name: bytes) -> str:
        """The value of a header, empty where there is none; the first where there are several."""
        return next((value.decode("latin-1") for known, value in self.headers if known == name), "")


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent back. The request's id and the length are added on the way."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Page:
    """Something to GET without a framework. FastAPI has a route for it too, to describe it and refuse methods."""

    path: str
    """As FastAPI writes it; ``{name:path}`` at its end stands for any rest."""
    answer: Callable[[Asked], Awaitable[Answer]]
    """Raises `GatewayError` or `StorageError` for what is answered with an error; its docstring describes the page."""
    tag: str
    described: bool = True


def json_answer(body: bytes, status: int = 200, **headers: str) -> Answer:
    """JSON, with further *headers* whose names have ``_`` in place of ``-``."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(body, status, {"content-type": "application/json", **named})


def error_answer(error: GatewayError, method: str, request_id: str) -> Answer:
    """The answer for *error*, in the shape OpenAI clients read."""
    lines = error_headers(error, request_id).decode("latin-1").split("\r\n")[:-1]
    body = b"" if method == "HEAD" else error_body(error, request_id)
    return Answer(body, error.status, dict(line.split(": ", 1) for line in lines))


def as_gateway_error(error: Exception, method: str, path: str) -> GatewayError:
    """What a client is told of *error*, whatever it is. One that nobody expected is a bug, and logged."""
    if isinstance(error, GatewayError):
        return error
    if isinstance(error, StorageError):
        kind = StorageAwayError if isinstance(error, StorageUnavailableError) else StorageFailedError
        return kind(mask(str(error)))
    _log.error("a request met a bug: %s %s", method, path, exc_info=error)
    return GatewayError("The gateway met an error of its own; its log has the details.")


def request_id_of(scope: Scope) -> str:
    """The id of the request that *scope* belongs to."""
    state = scope.setdefault("state", {})
    if _ID_KEY not in state:
        state[_ID_KEY] = id_in_headers(scope["headers"])
    found: str = state[_ID_KEY]
    return found
