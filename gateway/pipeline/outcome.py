"""From the failures of all attempts to the one error the client gets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from adapters.errors import TOOL_CALL_MISSING, ProviderError
from adapters.target import Target
from adapters.types import FailureKind
from gateway.errors import (
    ContextLengthError,
    GatewayError,
    InvalidRequestError,
    ModelNotFoundError,
    OverloadedError,
    RateLimitError,
    RequestTooLargeError,
    ShuttingDownError,
    UnsupportedParameterError,
    UpstreamAuthError,
    UpstreamError,
    UpstreamPaymentError,
    UpstreamTimeoutError,
)
from gateway.pipeline.call import Attempt
from policies.retry import KEY_REFUSED

_Maker = Callable[[ProviderError], GatewayError]

_DEFAULT_RETRY_AFTER_SECONDS: Final = 1.0
# The target could not take this very request; one that could says more about why there is no answer.
_UNFIT: Final = frozenset({FailureKind.UNSUPPORTED_PARAMETER, FailureKind.CONTEXT_LENGTH})
# Stays until somebody changes a key, an account, a name or a machine.
_LASTING: Final = KEY_REFUSED | {FailureKind.NOT_FOUND, FailureKind.NOT_LOADED, FailureKind.TLS, FailureKind.REDIRECT}


def _bad_request(failure: ProviderError) -> GatewayError:
    kind = RequestTooLargeError if failure.status == 413 else InvalidRequestError
    return kind(failure.message, param=failure.param, code=failure.code)


def _invalid_output(failure: ProviderError) -> GatewayError:
    code = TOOL_CALL_MISSING if failure.code == TOOL_CALL_MISSING else "schema_validation_failed"
    return UpstreamError(failure.message, param=failure.param, code=code)


def _of(kind: type[GatewayError], code: str | None = None) -> _Maker:
    return lambda failure: kind(failure.message, param=failure.param, code=code)


_upstream: Final = _of(UpstreamError)
_timeout: Final = _of(UpstreamTimeoutError)

# The status map of the provider facts, by kind. A test asserts that no kind is missing.
_ERRORS: Final[Mapping[FailureKind, _Maker]] = {
    FailureKind.CONNECT: _upstream,
    FailureKind.DNS: _upstream,
    FailureKind.TLS: _upstream,
    FailureKind.CONNECT_TIMEOUT: _timeout,
    FailureKind.RESET: _upstream,
    FailureKind.FIRST_CONTENT_TIMEOUT: _timeout,
    FailureKind.STALLED: _of(UpstreamTimeoutError, code="upstream_stalled"),
    FailureKind.TOTAL_TIMEOUT: _timeout,
    FailureKind.INTERRUPTED: _of(UpstreamError, code="upstream_interrupted"),
    FailureKind.MALFORMED: _of(UpstreamError, code="upstream_malformed"),
    FailureKind.TOO_LARGE: _upstream,
    FailureKind.WRONG_CONTENT_TYPE: _upstream,
    FailureKind.BAD_ENCODING: _upstream,
    FailureKind.REDIRECT: _upstream,
    FailureKind.EMPTY: _upstream,
    FailureKind.INVALID_OUTPUT: _invalid_output,
    FailureKind.RATE_LIMITED: _of(RateLimitError),
    FailureKind.OVERLOADED: _of(OverloadedError),
    FailureKind.SERVER_ERROR: _upstream,
    FailureKind.TIMEOUT_STATUS: _timeout,
    FailureKind.BAD_REQUEST: _bad_request,
    FailureKind.CONTEXT_LENGTH: _of(ContextLengthError),
    FailureKind.CONTENT_FILTER: _of(InvalidRequestError, code="content_filter"),
    FailureKind.UNSUPPORTED_PARAMETER: _of(UnsupportedParameterError),
    FailureKind.AUTH: _of(UpstreamAuthError),
    FailureKind.PAYMENT: _of(UpstreamPaymentError),
    FailureKind.NOT_FOUND: _of(UpstreamError, code="upstream_model_not_found"),
    FailureKind.UNKNOWN_ADAPTER: _of(ModelNotFoundError),
    FailureKind.NOT_LOADED: _of(UpstreamError, code="upstream_model_not_loaded"),
    FailureKind.NO_CAPACITY: _of(OverloadedError),
    FailureKind.ENGINE_DOWN: _of(OverloadedError),
    FailureKind.CLIENT_LEFT: _upstream,
    FailureKind.SHUTTING_DOWN: _of(ShuttingDownError),
}


def to_error(failure: ProviderError) -> GatewayError:
    """The error a client gets for one failure."""
    return _ERRORS[failure.kind](failure)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The error of a request whose targets all failed, and what goes with it."""

    error: GatewayError
    provider: str
    upstream_status: int | None
    retry_after_seconds: float | None
    should_retry: bool | None


def judge(attempts: Sequence[Attempt], rested: Sequence[tuple[Target, ProviderError]] = ()) -> Verdict:
    """The verdict over *attempts*, all of which failed, and over *rested*, targets that were left alone.

    The first failure speaks for all: what a later target says, a 400 to a parameter it lacks for instance, must not
    hide why the first one could not answer. Passed over is only a target that could not take the request at all, and
    a key that was refused where another one of the same target was tried after it.
    """
    failed = [(attempt.target, attempt.failure) for attempt in attempts if attempt.failure is not None]
    tried_again = {earlier.target for earlier, later in pairwise(attempts) if earlier.target is later.target}
    told = [pair for pair in (*failed, *rested) if pair[1].kind not in _UNFIT] or failed
    told = [pair for pair in told if pair[1].kind not in KEY_REFUSED or pair[0] not in tried_again] or told[-1:]
    target, failure = told[0]
    error = to_error(failure)
    if error.status >= 500 and len(failed) > 1:
        error.message = f"{error.message.rstrip('.')}. Attempts: {_list(failed)}."
    retry_after = _retry_after([failure for _, failure in told]) if error.status in (429, 503) else None
    # The SDKs retry all of these by themselves: no use where nothing will have changed, and when we have already done
    # so it would only multiply the load.
    should_retry = False if error.status == 502 and (len(failed) > 1 or failure.kind in _LASTING) else None
    return Verdict(error, target.provider, failure.status, retry_after, should_retry)


def _retry_after(failures: Sequence[ProviderError]) -> float:
    """The earliest time at which one of the targets may answer again."""
    known = [failure.retry_after_seconds for failure in failures if failure.retry_after_seconds is not None]
    return min(known, default=_DEFAULT_RETRY_AFTER_SECONDS)


def _list(failed: Sequence[tuple[Target, ProviderError]]) -> str:
    return ", ".join(f"{target.name} {failure.kind.value}" for target, failure in failed)
