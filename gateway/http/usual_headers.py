"""Puts on every answer of FastAPI what all answers carry: the request's id, and that no cache is to keep it."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.http.plain import request_id_of


class UsualHeaders:
    """ASGI middleware; a header that an answer has already is left alone.

    The id goes under both names that SDKs read. Without a word about caches, one in between could keep an answer, or a
    404, for as long as it thinks best (RFC 9111, 4.2.2).
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = request_id_of(scope).encode("latin-1")
        usual = [(b"x-request-id", request_id), (b"request-id", request_id), (b"cache-control", b"no-store")]

        async def send_with_usual(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(pair for pair in usual if pair[0] not in present)]
            await send(message)

        await self._app(scope, receive, send_with_usual)
