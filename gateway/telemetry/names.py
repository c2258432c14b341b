"""The names that dashboards and alerts are built on: metrics, their labels and label values."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from adapters.types import FailureKind, Operation
from gateway.__about__ import METRIC_PREFIX

REQUESTS: Final = METRIC_PREFIX + "requests_total"
REQUEST_DURATION: Final = METRIC_PREFIX + "request_duration_seconds"
OVERHEAD: Final = METRIC_PREFIX + "overhead_seconds"
IN_FLIGHT: Final = METRIC_PREFIX + "requests_in_flight"
QUEUE_DEPTH: Final = METRIC_PREFIX + "queue_depth"
COST: Final = METRIC_PREFIX + "cost_usd_total"
ATTEMPTS: Final = METRIC_PREFIX + "upstream_attempts_total"
RETRIES: Final = METRIC_PREFIX + "retries_total"
FALLBACKS: Final = METRIC_PREFIX + "fallbacks_total"
ADJUSTED: Final = METRIC_PREFIX + "params_adjusted_total"
LOCAL_LOADED: Final = METRIC_PREFIX + "local_model_loaded"
TARGET_HEALTHY: Final = METRIC_PREFIX + "target_healthy"
RATELIMIT_REMAINING: Final = METRIC_PREFIX + "upstream_ratelimit_remaining"
LOG_LINES_DROPPED: Final = METRIC_PREFIX + "log_lines_dropped_total"
CONFIG_RELOAD_OK: Final = METRIC_PREFIX + "config_reload_ok"
BUILD_INFO: Final = METRIC_PREFIX + "build_info"

# OpenTelemetry's GenAI conventions 0.1.0 (development status), as Prometheus spells them.
INFERENCE_DURATION: Final = "gen_ai_client_inference_duration_seconds"
FIRST_CHUNK: Final = "gen_ai_client_inference_time_to_first_chunk_seconds"
INPUT_TOKENS: Final = "gen_ai_client_inference_usage_input_tokens_total"
OUTPUT_TOKENS: Final = "gen_ai_client_inference_usage_output_tokens_total"
CACHED_TOKENS: Final = "gen_ai_client_inference_usage_cache_read_input_tokens_total"
REASONING_TOKENS: Final = "gen_ai_client_inference_usage_reasoning_output_tokens_total"
INFERENCE_LABELS: Final = ("gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "error_type")

OTHER: Final = "other"
"""Stands for every label value outside the configuration, and for all series past the ceiling."""

ENDPOINTS: Final = frozenset({*(operation.value for operation in Operation), OTHER})

INFERENCE_BUCKETS: Final = tuple(0.01 * 2**power for power in range(14))
REQUEST_BUCKETS: Final = (
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
    120.0,
    300.0,
    600.0,
)
OVERHEAD_BUCKETS: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)

OPERATION_NAMES: Final = {
    Operation.CHAT: "chat",
    Operation.COMPLETIONS: "text_completion",
    Operation.EMBEDDINGS: "embeddings",
}


class Outcome(StrEnum):
    """How an attempt ended, as ``gateway_upstream_attempts_total`` tells it."""

    OK = "ok"
    HTTP_4XX = "http_4xx"
    HTTP_5XX = "http_5xx"
    RATE_LIMITED = "rate_limited"
    TIMEOUT = "timeout"
    CONNECT = "connect"
    BROKEN = "broken"  # an answer that broke off or was no answer
    CANCELLED = "cancelled"  # the client left first, or the gateway is stopping
    BREAKER_OPEN = "breaker_open"


OUTCOMES: Final = {
    FailureKind.CONNECT: Outcome.CONNECT,
    FailureKind.DNS: Outcome.CONNECT,
    FailureKind.TLS: Outcome.CONNECT,
    FailureKind.CONNECT_TIMEOUT: Outcome.CONNECT,
    FailureKind.RESET: Outcome.BROKEN,
    FailureKind.FIRST_CONTENT_TIMEOUT: Outcome.TIMEOUT,
    FailureKind.STALLED: Outcome.TIMEOUT,
    FailureKind.TOTAL_TIMEOUT: Outcome.TIMEOUT,
    FailureKind.INTERRUPTED: Outcome.BROKEN,
    FailureKind.MALFORMED: Outcome.BROKEN,
    FailureKind.TOO_LARGE: Outcome.BROKEN,
    FailureKind.WRONG_CONTENT_TYPE: Outcome.BROKEN,
    FailureKind.BAD_ENCODING: Outcome.BROKEN,
    FailureKind.REDIRECT: Outcome.BROKEN,
    FailureKind.EMPTY: Outcome.BROKEN,
    FailureKind.INVALID_OUTPUT: Outcome.BROKEN,
    FailureKind.RATE_LIMITED: Outcome.RATE_LIMITED,
    FailureKind.OVERLOADED: Outcome.HTTP_5XX,
    FailureKind.SERVER_ERROR: Outcome.HTTP_5XX,
    FailureKind.TIMEOUT_STATUS: Outcome.TIMEOUT,
    FailureKind.BAD_REQUEST: Outcome.HTTP_4XX,
    FailureKind.CONTEXT_LENGTH: Outcome.HTTP_4XX,
    FailureKind.CONTENT_FILTER: Outcome.HTTP_4XX,
    FailureKind.UNSUPPORTED_PARAMETER: Outcome.HTTP_4XX,
    FailureKind.AUTH: Outcome.HTTP_4XX,
    FailureKind.PAYMENT: Outcome.HTTP_4XX,
    FailureKind.NOT_FOUND: Outcome.HTTP_4XX,
    FailureKind.UNKNOWN_ADAPTER: Outcome.HTTP_4XX,
    FailureKind.NOT_LOADED: Outcome.HTTP_5XX,
    FailureKind.NO_CAPACITY: Outcome.RATE_LIMITED,
    FailureKind.ENGINE_DOWN: Outcome.CONNECT,
    FailureKind.CLIENT_LEFT: Outcome.CANCELLED,
    FailureKind.SHUTTING_DOWN: Outcome.CANCELLED,
}
