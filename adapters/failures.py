"""From a refusal to a kind of failure: an error body, weighed with its status and the provider's own cases."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from adapters import refusal_words as words
from adapters.error_body import ErrorFields, error_fields, read_error
from adapters.errors import ProviderError
from adapters.rate_limits import MAX_RETRY_AFTER_SECONDS, parse_retry_after, wait_in_words
from adapters.spec import ErrorCaseSpec
from adapters.types import FailureKind

__all__ = [
    "MAX_RETRY_AFTER_SECONDS",
    "ErrorFields",
    "error_fields",
    "from_fields",
    "from_response",
    "parse_retry_after",
    "read_error",
]

_MAX_MESSAGE: Final = 600
_MAX_READ: Final = 4096
_MAX_CODE: Final = 100

_BY_STATUS: Final[Mapping[int, FailureKind]] = {
    401: FailureKind.AUTH,
    402: FailureKind.PAYMENT,
    403: FailureKind.AUTH,
    404: FailureKind.NOT_FOUND,
    408: FailureKind.TIMEOUT_STATUS,
    409: FailureKind.SERVER_ERROR,
    410: FailureKind.NOT_FOUND,
    412: FailureKind.PAYMENT,
    424: FailureKind.SERVER_ERROR,
    425: FailureKind.SERVER_ERROR,
    429: FailureKind.RATE_LIMITED,
    498: FailureKind.OVERLOADED,
    499: FailureKind.SERVER_ERROR,  # it believes that we have left
    501: FailureKind.UNSUPPORTED_PARAMETER,
    503: FailureKind.OVERLOADED,
    504: FailureKind.TIMEOUT_STATUS,
    524: FailureKind.TIMEOUT_STATUS,
    529: FailureKind.OVERLOADED,
}
# Kinds that only repeat what a status says: a wording that says more comes first.
_VAGUE: Final = frozenset({FailureKind.BAD_REQUEST, FailureKind.SERVER_ERROR})
# Trying the same target again is no use, or only once, whatever the kind would allow.
_TRIES_BY_STATUS: Final[Mapping[int, int]] = {409: 2, 413: 1, 425: 2, 499: 2}
_TRIES_BY_KIND: Final[Mapping[FailureKind, int]] = {FailureKind.INVALID_OUTPUT: 2}
# What the provider says of these is about our account or its machine, and nothing to a client.
_PRIVATE: Final[Mapping[FailureKind, str]] = {
    FailureKind.AUTH: "{} refused the gateway's key. The operator has to look at it.",
    FailureKind.PAYMENT: "{} says the gateway's account is out of credit. The operator has to look at it.",
}


def from_response(
    provider: str,
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    redact: Callable[[str], str],
    cases: Sequence[ErrorCaseSpec] = (),
    *,
    retry_after_seconds: float | None = None,
) -> ProviderError:
    """The failure that an answer with an error status stands for; *cases* are the provider file's own.

    *retry_after_seconds* is what other headers than Retry-After tell of the wait.
    """
    detail = redact(body[:200].decode("utf-8", "replace"))
    if 300 <= status < 400:
        return ProviderError(
            FailureKind.REDIRECT,
            f"{provider} answered with a redirect ({status}), which is never followed. Check its base_url.",
            status=status,
            detail=detail,
        )
    if status < 300:
        return ProviderError(
            FailureKind.EMPTY, f"{provider} answered {status}, which is no answer.", status=status, detail=detail
        )
    fields = read_error(body)
    if fields is None:
        fields = ErrorFields(message=f"{provider} answered {status} without a readable reason.")
    wait = parse_retry_after(headers)
    if wait is None:
        wait = retry_after_seconds
    return from_fields(provider, fields, status, redact, cases, retry_after_seconds=wait, detail=detail)


def from_fields(
    provider: str,
    fields: ErrorFields,
    status: int | None,
    redact: Callable[[str], str],
    cases: Sequence[ErrorCaseSpec] = (),
    *,
    retry_after_seconds: float | None = None,
    detail: str = "",
) -> ProviderError:
    """The failure that an error object stands for; *status* is None where it came inside a 200 (U25, U26)."""
    if status is None:
        status = fields.status or words.status_of(fields.code) or words.status_of(fields.type)
    kind = _kind(fields, status, cases)
    param = fields.param
    if kind is FailureKind.UNSUPPORTED_PARAMETER and param is None:
        param = words.refused_parameter(fields.message)
    if kind in _PRIVATE:
        message = _PRIVATE[kind].format(provider)
    else:
        # Blotted out before it is cut, or half a key would no longer look like one.
        message = redact(fields.message[:_MAX_READ]).strip()[:_MAX_MESSAGE]
    if retry_after_seconds is None and kind in (FailureKind.RATE_LIMITED, FailureKind.OVERLOADED):
        retry_after_seconds = fields.retry_after_seconds
        if retry_after_seconds is None:
            retry_after_seconds = wait_in_words(fields.message)
    return ProviderError(
        kind,
        message or f"{provider} refused without a reason",
        status=status,
        code=redact(fields.code)[:_MAX_CODE] or None,
        param=redact(param)[:_MAX_CODE] if param else None,
        retry_after_seconds=retry_after_seconds,
        tries=_TRIES_BY_STATUS.get(status or 0) or _TRIES_BY_KIND.get(kind),
        failed_generation=fields.failed_generation,
        detail=detail,
    )


def _kind(fields: ErrorFields, status: int | None, cases: Sequence[ErrorCaseSpec]) -> FailureKind:
    """The most particular word wins: the provider's own case, a code, a wording, a type, at last the status."""
    fitting = [case for case in cases if _fits(case, fields, status)]
    for case in fitting:
        if (case.code is not None or case.match) and case.kind is not None and case.kind not in _VAGUE:
            return case.kind
    told = words.kind_of(fields, status)
    if told is not None:
        return told
    for case in sorted(fitting, key=lambda case: (not (case.code or case.match), not case.type)):
        if case.kind is not None:
            return case.kind
    if status is None or status >= 500:
        return _BY_STATUS.get(status or 500, FailureKind.SERVER_ERROR)
    return _BY_STATUS.get(status, FailureKind.BAD_REQUEST)


def _fits(case: ErrorCaseSpec, fields: ErrorFields, status: int | None) -> bool:
    if status not in case.status or (case.type and fields.type not in case.type):
        return False
    if case.code is not None and fields.code != case.code:
        return False
    return not case.match or any(phrase in fields.message.lower() for phrase in case.match)
