"""``/metrics``, open to everybody who can reach the port as exporters usually are; labels hold no secrets."""

from __future__ import annotations

from fastapi import APIRouter, Response

from gateway.services import Services
from gateway.telemetry.series import CONTENT_TYPE


def metrics_router(services: Services) -> APIRouter:
    """One route, in Prometheus text format, summed over all workers."""
    router = APIRouter(tags=["operations"])

    @router.get("/metrics")
    async def metrics() -> Response:
        """Counters, histograms and gauges."""
        services.settlements.flush()
        return Response(services.metrics.render(), headers={"content-type": CONTENT_TYPE, "cache-control": "no-store"})

    return router
