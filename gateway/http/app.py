"""Everything on the port but the hot routes: models, health, metrics and administration."""

from __future__ import annotations

from typing import Final

from fastapi import FastAPI, Request, Response

from gateway.__about__ import DISTRIBUTION, __version__
from gateway.data_plane.plane import PREFIXES
from gateway.http import admin_keys, admin_reload
from gateway.http.access import Callers
from gateway.http.errors import add_error_handlers
from gateway.http.health import health_router
from gateway.http.metrics import metrics_router
from gateway.http.models import models_router
from gateway.http.openapi import with_generation_paths
from gateway.http.request_ids import RequestIds
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
    """The FastAPI application of one worker; `POST` on a generation route never gets here."""
    app = FastAPI(
        title=DISTRIBUTION,
        version=__version__,
        # The pages FastAPI brings load their scripts from a public CDN, which an offline gateway cannot reach.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    callers = Callers(services)

    async def root(_request: Request) -> Response:
        return Response(b'{"status":"alive"}', media_type="application/json")

    # Some clients probe the root with HEAD before their first request.
    app.add_route("/", root, methods=["GET", "HEAD"], include_in_schema=False)
    app.include_router(models_router(services, callers))
    app.include_router(health_router(services))
    if services.settings.telemetry.metrics:
        app.include_router(metrics_router(services))
    app.include_router(admin_keys.router(services))
    app.include_router(admin_reload.router(services))
    app.add_middleware(RequestIds)
    server = services.settings.server
    add_error_handlers(
        app,
        fallback_host=f"{server.host}:{server.port}",
        other_paths=[path for path in SCOPES if "{" not in path],
    )
    with_generation_paths(app, SCOPES)
    return app
