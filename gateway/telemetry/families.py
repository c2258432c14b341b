"""The families of metrics: their names, what they count, their labels, and how several workers make one figure."""

from __future__ import annotations

from gateway.telemetry import names
from gateway.telemetry.series import Family

FAMILIES = (
    Family(
        names.REQUESTS,
        "counter",
        "Requests answered, by what the client got.",
        ("endpoint", "model", "status", "error_code"),
    ),
    Family(
        names.REQUEST_DURATION,
        "histogram",
        "From the request's head to the end of the answer.",
        ("endpoint", "model", "stream"),
        names.REQUEST_BUCKETS,
    ),
    Family(
        names.OVERHEAD,
        "histogram",
        "Time the gateway itself took, waiting for upstreams and clients not counted.",
        ("endpoint", "model", "stream"),
        names.OVERHEAD_BUCKETS,
    ),
    Family(names.IN_FLIGHT, "gauge", "Attempts under way.", ("provider",)),
    Family(names.QUEUE_DEPTH, "gauge", "Requests waiting in front of a provider.", ("provider",)),
    Family(
        names.INFERENCE_DURATION,
        "histogram",
        "Duration of one attempt at a provider.",
        names.INFERENCE_LABELS,
        names.INFERENCE_BUCKETS,
    ),
    Family(
        names.FIRST_CHUNK,
        "histogram",
        "From sending an attempt to its first content.",
        names.INFERENCE_LABELS,
        names.INFERENCE_BUCKETS,
    ),
    Family(names.INPUT_TOKENS, "counter", "Prompt tokens, cached ones among them.", ("provider", "model")),
    Family(names.OUTPUT_TOKENS, "counter", "Completion tokens, reasoning among them.", ("provider", "model")),
    Family(names.CACHED_TOKENS, "counter", "Prompt tokens the provider had cached.", ("provider", "model")),
    Family(names.REASONING_TOKENS, "counter", "Completion tokens spent on reasoning.", ("provider", "model")),
    Family(names.COST, "counter", "Cost of what was consumed.", ("provider", "model", "team"), unit=1e-9),
    Family(names.ATTEMPTS, "counter", "Attempts, by how they ended.", ("provider", "target", "outcome")),
    Family(names.RETRIES, "counter", "Further tries at the same target.", ("model", "from", "to", "reason")),
    Family(names.FALLBACKS, "counter", "Moves to another target.", ("model", "from", "to", "reason")),
    Family(names.ADJUSTED, "counter", "Parameters changed for a provider.", ("provider", "param", "action")),
    Family(names.LOCAL_LOADED, "gauge", "1 while a local model is in memory.", ("provider",), combine=max),
    Family(names.TARGET_HEALTHY, "gauge", "1 while a target can be used.", ("provider", "target"), combine=min),
    Family(
        names.RATELIMIT_REMAINING,
        "gauge",
        "What a provider last said is left of its limits.",
        ("provider", "kind"),
        combine=min,
    ),
    Family(names.LOG_LINES_DROPPED, "counter", "Log lines given up because their sink was blocked."),
    Family(
        names.CONFIG_RELOAD_OK, "gauge", "0 while the configuration that was last loaded is not in force.", combine=min
    ),
    Family(names.BUILD_INFO, "gauge", "Always 1; the version is the label.", ("version",), combine=max),
)
