"""Gauges that are read off the running parts when somebody scrapes: queues, health, what the log gave up."""

from __future__ import annotations

from collections.abc import Iterator

from gateway.catalog import Catalog
from gateway.pipeline.backends import Backends
from gateway.telemetry import names
from gateway.telemetry.logging import lines_dropped
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.series import Labels


def watch_parts(metrics: Metrics, catalog: Catalog, backends: Backends) -> None:
    """Have *metrics* show the state of the local engines and their queues, and count lost log lines."""

    def queue_depth() -> Iterator[tuple[Labels, float]]:
        for provider, queue in backends.queues.items():
            yield (provider,), queue.waiting

    def target_healthy() -> Iterator[tuple[Labels, float]]:
        # Only of engines do we know without asking; a hosted target shows its health in the attempts.
        down = dict(backends.engine_problems())
        for model in catalog.models.values():
            for target in model.targets:
                if target.provider in down:
                    yield (target.provider, target.name), 0 if down[target.provider] else 1

    metrics.watch(names.QUEUE_DEPTH, queue_depth)
    metrics.watch(names.TARGET_HEALTHY, target_healthy)
    metrics.watch(names.LOG_LINES_DROPPED, lambda: [((), lines_dropped())])
