"""From a refusal to a kind of failure: every envelope the providers use, read into one `ProviderError`."""

from __future__ import annotations

import email.utils
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from adapters.errors import ProviderError
from adapters.spec import ErrorCaseSpec
from adapters.types import FailureKind

MAX_RETRY_AFTER_SECONDS: Final = 300.0
_MAX_MESSAGE: Final = 600
_MAX_CODE: Final = 100

_CONTEXT_CODES: Final = frozenset({"context_length_exceeded", "exceed_context_size_error", "context_window_exceeded"})
_FILTER_CODES: Final = frozenset({"content_filter", "content_policy_violation", "moderation_blocked"})
_RATE_CODES: Final = frozenset({"rate_limit_exceeded", "rate_limit_error", "too_many_requests", "tokens", "requests"})
# Wordings collected in the provider files (Cerebras, vLLM, SGLang, llama.cpp, TGI, Together, Fireworks).
_CONTEXT_WORDS: Final = re.compile(
    r"maximum context length|context length (?:is|of) only|exceeds? the (?:available )?context|context size"
    r"|context window|longer than the (?:model's|maximum)|reduce the length of the (?:messages|input|prompt)"
    r"|max_new_tokens` must be <=|prompt is too long|input is too long|too many (?:input )?tokens",
    re.IGNORECASE,
)
_STATUS: Final = re.compile(r"[0-9]{1,6}")
_FILTER_WORDS: Final = re.compile(r"content (?:management )?policy|safety system|content filter", re.IGNORECASE)

_BY_STATUS: Final[Mapping[int, FailureKind]] = {
    401: FailureKind.AUTH,
    402: FailureKind.PAYMENT,
    403: FailureKind.AUTH,
    404: FailureKind.NOT_FOUND,
    408: FailureKind.TIMEOUT_STATUS,
    409: FailureKind.SERVER_ERROR,
    412: FailureKind.PAYMENT,
    424: FailureKind.SERVER_ERROR,
    425: FailureKind.SERVER_ERROR,
    429: FailureKind.RATE_LIMITED,
    498: FailureKind.OVERLOADED,
    503: FailureKind.OVERLOADED,
    504: FailureKind.TIMEOUT_STATUS,
    524: FailureKind.TIMEOUT_STATUS,
    529: FailureKind.OVERLOADED,
}
# Codes and types that name a status where the status itself is spent: in a 200, or in the middle of a stream.
_BY_CODE: Final[Mapping[str, int]] = {
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "too_many_requests": 429,
    "insufficient_quota": 402,
    "invalid_api_key": 401,
    "authentication_error": 401,
    "permission_error": 403,
    "model_not_found": 404,
    "not_found_error": 404,
    "invalid_request_error": 400,
    "badrequesterror": 400,
    "overloaded_error": 503,
    "overloaded": 503,
    "service_unavailable": 503,
    "unavailable_error": 503,
    "timeout": 504,
    "timeout_error": 504,
}


@dataclass(frozen=True, slots=True)
class ErrorFields:
    """What an error body says, whatever its envelope."""

    message: str = ""
    type: str = ""
    code: str = ""
    param: str | None = None
    status: int | None = None
    """A status given inside the body, as vLLM and llama.cpp do with an integer ``code``."""


def read_error(body: bytes) -> ErrorFields | None:
    """The fields of an error body, or None when it is no JSON error (U24: it is then never shown).

    Understands ``{error: {...}}``, ``{error: "text", error_type}``, ``{message, type, code}``, ``{detail: ...}``
    and ``{object: "error", ...}``.
    """
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return None
    return error_fields(decoded)


def error_fields(decoded: Any) -> ErrorFields | None:
    """As `read_error`, from what was decoded already."""
    if isinstance(decoded, str):
        return ErrorFields(message=decoded)
    if not isinstance(decoded, dict):
        return None
    inner = decoded.get("error", decoded)
    if isinstance(inner, str):
        return ErrorFields(message=inner, type=_text(decoded.get("error_type")), code=_text(decoded.get("error_code")))
    if not isinstance(inner, dict):
        return None
    message = next((inner[name] for name in ("message", "detail", "msg") if inner.get(name) is not None), "")
    if not isinstance(message, str):
        message = msgspec.json.encode(message).decode()
    code, status = inner.get("code"), None
    if isinstance(code, str) and _STATUS.fullmatch(code):
        code = int(code)
    if isinstance(code, int) and not isinstance(code, bool):
        status, code = (code if 400 <= code < 600 else None), None
    if not message and not code and not inner.get("type"):
        return None
    param = inner.get("param")
    return ErrorFields(
        message, _text(inner.get("type")), _text(code), param if isinstance(param, str) else None, status
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def from_response(
    provider: str,
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    redact: Callable[[str], str],
    cases: Sequence[ErrorCaseSpec] = (),
) -> ProviderError:
    """The failure that an answer with an error status stands for; *cases* are the provider file's own."""
    detail = redact(body[:200].decode("utf-8", "replace"))
    retry_after = parse_retry_after(headers)
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
    return from_fields(provider, fields, status, redact, cases, retry_after_seconds=retry_after, detail=detail)


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
        status = fields.status or _BY_CODE.get(fields.code.lower()) or _BY_CODE.get(fields.type.lower())
    kind = _case_kind(fields, status, cases) or _kind(fields, status)
    message = redact(fields.message).strip()[:_MAX_MESSAGE] or f"{provider} refused without a reason"
    if kind in (FailureKind.AUTH, FailureKind.PAYMENT):
        # The provider's words may hold our account's name or key.
        what = (
            "refused the gateway's key" if kind is FailureKind.AUTH else "says the gateway's account is out of credit"
        )
        message = f"{provider} {what}. The operator has to look at it."
    return ProviderError(
        kind,
        message,
        status=status,
        code=redact(fields.code)[:_MAX_CODE] or None,
        param=redact(fields.param)[:_MAX_CODE] if fields.param else None,
        retry_after_seconds=retry_after_seconds,
        detail=detail,
    )


def _case_kind(fields: ErrorFields, status: int | None, cases: Sequence[ErrorCaseSpec]) -> FailureKind | None:
    """What the provider file says of such an error, when it says more than its status alone would."""
    message = fields.message.lower()
    for case in cases:
        if case.kind is None or status not in case.status or not (case.type or case.code or case.match):
            continue
        if case.type and fields.type not in case.type:
            continue
        if case.code is not None and fields.code != case.code:
            continue
        if case.match and not any(phrase in message for phrase in case.match):
            continue
        if case.kind is FailureKind.BAD_REQUEST:
            return None  # the general wordings may know it better
        return case.kind
    return None


def _kind(fields: ErrorFields, status: int | None) -> FailureKind:
    code, kind = fields.code.lower(), fields.type.lower()
    if code in _CONTEXT_CODES or kind in _CONTEXT_CODES:
        return FailureKind.CONTEXT_LENGTH
    if code in _FILTER_CODES or kind in _FILTER_CODES:
        return FailureKind.CONTENT_FILTER
    if status == 413 and (code in _RATE_CODES or kind in _RATE_CODES):
        return FailureKind.RATE_LIMITED  # Groq: one request over the tokens a minute
    if status in (400, 413, 422, None) and _CONTEXT_WORDS.search(fields.message):
        return FailureKind.CONTEXT_LENGTH
    if status == 400 and _FILTER_WORDS.search(fields.message):
        return FailureKind.CONTENT_FILTER
    if status is None or status >= 500:
        return _BY_STATUS.get(status or 500, FailureKind.SERVER_ERROR)
    return _BY_STATUS.get(status, FailureKind.BAD_REQUEST)


def parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds from ``retry-after-ms`` or ``retry-after`` (seconds or a date); capped, None when absent or nonsense."""
    milliseconds = headers.get("retry-after-ms")
    if milliseconds is not None:
        seconds = _number(milliseconds)
        if seconds is not None:
            return min(seconds / 1000, MAX_RETRY_AFTER_SECONDS)
    value = headers.get("retry-after")
    if value is None:
        return None
    seconds = _number(value)
    if seconds is None:
        try:
            # A date is on the wall clock by its nature.
            seconds = max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
        except (ValueError, OverflowError):
            return None
    return min(seconds, MAX_RETRY_AFTER_SECONDS)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None
