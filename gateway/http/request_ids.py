"""Puts the request's id on every answer of FastAPI, under both names that SDKs read."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.http.plain import request_id_of


class RequestIds:
    """ASGI middleware; an answer that names its id already is left alone."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        value = request_id_of(scope).encode("latin-1")

        async def send_with_ids(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name for name, _ in message["headers"]}
                missing = [(name, value) for name in (b"x-request-id", b"request-id") if name not in present]
                message["headers"] = [*message["headers"], *missing]
            await send(message)

        await self._app(scope, receive, send_with_ids)
