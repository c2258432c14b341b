"""``/metrics``, open to everybody who can reach the port as exporters usually are; labels hold no secrets."""

from __future__ import annotations

from gateway.http.plain import Answer, Asked, Page
from gateway.services import Services
from gateway.telemetry.series import CONTENT_TYPE


def metrics_pages(services: Services) -> list[Page]:
    """One page, in Prometheus text format, summed over all workers."""

    async def metrics(_asked: Asked) -> Answer:
        """Counters, histograms and gauges."""
        services.settlements.flush()
        body = services.metrics.render()
        return Answer(body, 200, {"content-type": CONTENT_TYPE, "cache-control": "no-store"})

    return [Page("/metrics", metrics, "operations")]
