"""Gauges that are read off the running parts when somebody scrapes: queues, health, what the log gave up."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator

from gateway.pipeline.call import Call
from gateway.services import Configuration
from gateway.telemetry import names
from gateway.telemetry.logging import lines_dropped
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.series import Labels
from local_engine.state import LOADED


def watch_parts(
    metrics: Metrics,
    current: Callable[[], Configuration],
    clock: Callable[[], float] = time.monotonic,
    calls: Collection[Call] = (),
) -> None:
    """Have *metrics* show what is under way, the local engines, their queues and the providers' limits.

    Lost log lines are counted too. *current* gives the configuration in force; *clock* is that of `Services`, as are
    *calls*, those that are under way.
    """

    def in_flight() -> Iterator[tuple[Labels, float]]:
        under_way = dict.fromkeys(
            (target.provider for model in current().catalog.models.values() for target in model.targets), 0
        )
        for call in calls:
            attempt = call.last_attempt
            if attempt is not None and not attempt.ended:
                provider = attempt.target.provider
                under_way[provider] = under_way.get(provider, 0) + 1
        for provider, count in under_way.items():
            yield (provider,), count

    def queue_depth() -> Iterator[tuple[Labels, float]]:
        for provider, queue in current().backends.queues.items():
            yield (provider,), queue.waiting

    def local_loaded() -> Iterator[tuple[Labels, float]]:
        for provider, queue in current().backends.queues.items():
            yield (provider,), float(queue.engine.state in LOADED)

    def target_healthy() -> Iterator[tuple[Labels, float]]:
        # A hosted target is taken to be well until it asks to be left alone; the attempts show its other failures.
        configuration = current()
        unusable = configuration.backends.unusable(clock())
        for model in configuration.catalog.models.values():
            for target in model.targets:
                yield (target.provider, target.name), 0 if target.name in unusable else 1

    def ratelimit_remaining() -> Iterator[tuple[Labels, float]]:
        # Several targets of a provider may share a limit or have one each: what is nearest to its end is told.
        least: dict[Labels, float] = {}
        now = clock()
        for provider, limits in current().backends.limits():
            for kind, left in limits.remaining(now):
                least[provider, kind] = min(left, least.get((provider, kind), left))
        yield from least.items()

    metrics.watch(names.RATELIMIT_REMAINING, ratelimit_remaining)
    metrics.watch(names.IN_FLIGHT, in_flight)
    metrics.watch(names.QUEUE_DEPTH, queue_depth)
    metrics.watch(names.LOCAL_LOADED, local_loaded)
    metrics.watch(names.TARGET_HEALTHY, target_healthy)
    metrics.watch(names.LOG_LINES_DROPPED, lambda: [((), lines_dropped())])
