"""The server inside a bridge's process: OpenAI's endpoints, answered by calls of the library. Plain ASGI."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final, Protocol

from gateway.bridge.calling import arguments
from gateway.bridge.orders import Orders
from gateway.bridge.telling import Told, tell

_log = logging.getLogger(__name__)

Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
_JSON: Final = (b"content-type", b"application/json")
_EVENTS: Final = (b"content-type", b"text/event-stream")


class Library(Protocol):
    """The three functions of litellm that are used. They return pydantic models, or asynchronous iterators of such."""

    async def acompletion(self, **call: Any) -> Any: ...

    async def atext_completion(self, **call: Any) -> Any: ...

    async def aembedding(self, **call: Any) -> Any: ...


class BridgeApp:
    """Answers requests by calls of *library*. A client that leaves ends the call made for it."""

    def __init__(self, library: Library, orders: Orders) -> None:
        self._orders = orders
        self._functions: Mapping[str, Callable[..., Awaitable[Any]]] = {
            "/v1/chat/completions": library.acompletion,
            "/v1/completions": library.atext_completion,
            "/v1/embeddings": library.aembedding,
        }

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        body = await _body(receive)
        answering = asyncio.ensure_future(self._answer(scope, body, send))
        leaving = asyncio.ensure_future(_left(receive))
        try:
            await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
            answering.cancel()
            await asyncio.wait({answering, leaving})
        if not answering.cancelled():
            answering.result()

    async def _answer(self, scope: Mapping[str, Any], body: bytes, send: Send) -> None:
        function = self._functions.get(scope["path"])
        if function is None or scope["method"] != "POST":
            status = 404 if function is None else 405
            error = {"message": "no such endpoint", "type": "invalid_request_error", "param": None, "code": None}
            await _send_whole(send, status, {"error": error})
            return
        stream: AsyncIterator[Any] | None = None
        try:
            call = arguments(scope["path"], json.loads(body or b"null"), self._orders, _key(scope))
            result = await function(**call)
            if call.get("stream") is not True:
                await _send_whole(send, 200, _tidied(result))
                return
            stream = aiter(result)
            # The status is ours until here: a stream that breaks before its first event is an ordinary error.
            first = await anext(stream, None)
        except Exception as error:  # noqa: BLE001 - the edge: whatever the library raises is told, not died of
            await _send_error(send, _told(error))
            return
        await _send_stream(send, first, stream)


async def _send_stream(send: Send, first: Any, rest: AsyncIterator[Any]) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [_EVENTS]})
    try:
        chunk = first
        while chunk is not None:
            await _send_event(send, _tidied(chunk))
            chunk = await anext(rest, None)
        await send({"type": "http.response.body", "body": b"data: [DONE]\n\n", "more_body": True})
    except Exception as error:  # noqa: BLE001 - the edge, as above; the status is sent, so the error is an event
        await _send_event(send, _told(error).body)
    finally:
        close = getattr(rest, "aclose", None)
        if close is not None:
            await close()
    await send({"type": "http.response.body", "body": b""})


async def _send_event(send: Send, event: Mapping[str, Any]) -> None:
    data = b"data: " + json.dumps(event, ensure_ascii=False).encode() + b"\n\n"
    await send({"type": "http.response.body", "body": data, "more_body": True})


async def _send_error(send: Send, told: Told) -> None:
    await _send_whole(send, told.status, told.body, told.headers)


async def _send_whole(
    send: Send, status: int, answer: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> None:
    body = json.dumps(answer, ensure_ascii=False).encode()
    more = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in (headers or {}).items()]
    head = [_JSON, (b"content-length", str(len(body)).encode()), *more]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})


def _told(error: Exception) -> Told:
    if not hasattr(error, "status_code") and not type(error).__module__.startswith("gateway."):
        # Not something a provider said, so whoever runs this wants to know where it comes from.
        _log.exception("a call of the library failed")
    return tell(error)


def _tidied(answer: Any) -> dict[str, Any]:
    """The library's object as JSON, without the nulls it is full of but with those OpenAI's clients rely on."""
    plain: dict[str, Any] = answer.model_dump(mode="json", exclude_none=True)
    for choice in plain.get("choices", ()):
        choice.setdefault("finish_reason", None)
        if isinstance(choice.get("message"), dict):
            choice["message"].setdefault("content", None)
    return plain


def _key(scope: Mapping[str, Any]) -> str:
    """The provider's key, which the gateway sends as to any other server; several keys take turns there."""
    for name, value in scope["headers"]:
        if name == b"authorization":
            return str(value.decode("latin-1")).removeprefix("Bearer ")
    return ""


async def _body(receive: Receive) -> bytes:
    body = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return body
        body += bytes(message.get("body", b""))
        if not message.get("more_body", False):
            return body


async def _left(receive: Receive) -> None:
    """Return when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
