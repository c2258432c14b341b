"""The FastAPI application: administration, the description of all, and whatever path or method is wrong."""

from __future__ import annotations

from typing import Final

from fastapi import FastAPI, Request, Response

from gateway.__about__ import DISTRIBUTION, __version__
from gateway.data_plane.plane import PREFIXES
from gateway.http import admin_keys, admin_reload
from gateway.http.errors import add_error_handlers
from gateway.http.front import pages
from gateway.http.openapi import with_generation_paths
from gateway.http.plain import Asked, Page
from gateway.http.usual_headers import UsualHeaders
from gateway.scopes import Scope
from gateway.services import Services

SCOPES: Final = {
    "/": Scope.PUBLIC,
    "/health/live": Scope.PUBLIC,
    "/health/ready": Scope.PUBLIC,
    "/metrics": Scope.PUBLIC,
    "/openapi.json": Scope.PUBLIC,
    **{prefix + "/models": Scope.KEY for prefix in PREFIXES},
    **{prefix + "/models/{model_id:path}": Scope.KEY for prefix in PREFIXES},
    "/admin/keys": Scope.ADMIN,
    "/admin/keys/{key_id}": Scope.ADMIN,
    "/admin/reload": Scope.ADMIN,
}
"""Who may use each route; a route that is not here fails a test."""


def create_http_app(services: Services) -> FastAPI:
    """The application of one worker behind `Front`; by itself it answers the pages too, as the front does."""
    app = FastAPI(
        title=DISTRIBUTION,
        version=__version__,
        # The pages FastAPI brings load their scripts from a public CDN, which an offline gateway cannot reach.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    for page in pages(services):
        _add(app, page)
    app.include_router(admin_keys.router(services))
    app.include_router(admin_reload.router(services))
    app.add_middleware(UsualHeaders)
    server = services.settings.server
    add_error_handlers(
        app,
        fallback_host=f"{server.host}:{server.port}",
        other_paths=[path for path in SCOPES if "{" not in path],
    )
    with_generation_paths(app, SCOPES)
    return app


def _add(app: FastAPI, page: Page) -> None:
    async def answer(request: Request, rest: str = "") -> Response:
        said = await page.answer(Asked.of(request.scope, rest))
        return Response(said.body, said.status, dict(said.headers))

    async def plain(request: Request) -> Response:
        return await answer(request)

    async def of_model(request: Request, model_id: str) -> Response:
        return await answer(request, model_id)

    route = of_model if "{" in page.path else plain
    # FastAPI names and describes an operation after its function.
    route.__name__, route.__doc__ = page.answer.__name__, page.answer.__doc__
    app.get(page.path, tags=[page.tag], include_in_schema=page.described)(route)
    app.head(page.path, include_in_schema=False)(route)
