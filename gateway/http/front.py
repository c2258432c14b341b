"""Answers the pages that every installation asks for by itself, and gets FastAPI for the rest when the rest comes.

Probes of health, scrapes of metrics and lists of models come to each gateway; administration comes to few. FastAPI and
what it brings would be a quarter of the memory of a gateway that nobody administers (`gateway/late.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from gateway.http.access import Callers
from gateway.http.health import health_pages
from gateway.http.metrics import metrics_pages
from gateway.http.models import models_pages
from gateway.http.plain import Answer, Asked, Page, Scope, as_gateway_error, error_answer, json_answer, request_id_of
from gateway.late import load
from gateway.services import Services

Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]


class Front:
    """The ASGI application of one worker; `POST` on a generation route never gets here."""

    def __init__(self, services: Services) -> None:
        self._services = services
        found = pages(services)
        self._pages = {page.path: page for page in found}
        self._open_ended = [(page.path.partition("{")[0], page) for page in found if "{" in page.path]
        self._framework: Any = None
        self._making = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] in ("GET", "HEAD"):
            page, rest = self._find(scope["path"])
            if page is not None:
                await _send(scope, send, await _answer(page, scope, rest))
                return
        framework = self._framework
        if framework is None:
            framework = await self.framework()
        if framework.openapi_schema is None and scope.get("path") == framework.openapi_url:
            # It is made once, which takes a tenth of a second, and FastAPI would do so on the event loop.
            await asyncio.to_thread(framework.openapi)
        await framework(scope, receive, send)

    async def framework(self) -> Any:
        """The FastAPI application, imported and made in a thread: streams go on while the first who asks waits."""
        async with self._making:
            if self._framework is None:
                app = await load("gateway.http.app")
                # Whoever administers soon asks the database too.
                await load("gateway.storage.key_administration")
                self._framework = await asyncio.to_thread(app.create_http_app, self._services)
            return self._framework

    def _find(self, path: str) -> tuple[Page | None, str]:
        page = self._pages.get(path)
        if page is not None:
            return page, ""
        for start, open_ended in self._open_ended:
            if path.startswith(start):
                return open_ended, path[len(start) :]
        return None, ""


def pages(services: Services) -> list[Page]:
    """All that is answered without FastAPI."""
    found = [Page("/", _root, "operations", described=False), *models_pages(services, Callers(services))]
    found += health_pages(services)
    if services.settings.telemetry.metrics:
        found += metrics_pages(services)
    return found


async def _root(_asked: Asked) -> Answer:
    """Some clients probe the root with HEAD before their first request."""
    return json_answer(b'{"status":"alive"}')


async def _answer(page: Page, scope: Scope, rest: str) -> Answer:
    try:
        return await page.answer(Asked.of(scope, rest))
    except Exception as error:  # noqa: BLE001 - the edge: nothing but an answer may leave
        told = as_gateway_error(error, scope["method"], scope["path"])
        return error_answer(told, scope["method"], request_id_of(scope))


async def _send(scope: Scope, send: Send, answer: Answer) -> None:
    headers = dict(answer.headers)
    for name in ("x-request-id", "request-id"):
        headers.setdefault(name, request_id_of(scope))
    headers.setdefault("cache-control", "no-store")
    if answer.status != 304:
        headers["content-length"] = str(len(answer.body))
    body = b"" if scope["method"] == "HEAD" else answer.body
    await send({"type": "http.response.start", "status": answer.status, "headers": _encoded(headers.items())})
    await send({"type": "http.response.body", "body": body})


def _encoded(pairs: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in pairs]
