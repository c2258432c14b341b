"""Gauges that are read off the running parts when somebody scrapes: queues, health, what the log gave up."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from gateway.services import Configuration
from gateway.telemetry import names
from gateway.telemetry.logging import lines_dropped
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.series import Labels


def watch_parts(
    metrics: Metrics, current: Callable[[], Configuration], clock: Callable[[], float] = time.monotonic
) -> None:
    """Have *metrics* show the local engines, their queues and the providers' limits, and count lost log lines.

    *current* gives the configuration in force; *clock* is that of `Services`.
    """

    def queue_depth() -> Iterator[tuple[Labels, float]]:
        for provider, queue in current().backends.queues.items():
            yield (provider,), queue.waiting

    def target_healthy() -> Iterator[tuple[Labels, float]]:
        # Only of engines do we know without asking; a hosted target shows its health in the attempts.
        configuration = current()
        down = dict(configuration.backends.engine_problems())
        for model in configuration.catalog.models.values():
            for target in model.targets:
                if target.provider in down:
                    yield (target.provider, target.name), 0 if down[target.provider] else 1

    def ratelimit_remaining() -> Iterator[tuple[Labels, float]]:
        # Several targets of a provider may share a limit or have one each: what is nearest to its end is told.
        least: dict[Labels, float] = {}
        now = clock()
        for provider, limits in current().backends.limits():
            for kind, left in limits.remaining(now):
                least[provider, kind] = min(left, least.get((provider, kind), left))
        yield from least.items()

    metrics.watch(names.RATELIMIT_REMAINING, ratelimit_remaining)
    metrics.watch(names.QUEUE_DEPTH, queue_depth)
    metrics.watch(names.TARGET_HEALTHY, target_healthy)
    metrics.watch(names.LOG_LINES_DROPPED, lambda: [((), lines_dropped())])
