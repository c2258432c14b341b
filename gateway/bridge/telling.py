"""What the library raises, as OpenAI's clients read errors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from gateway.bridge.calling import NotCallableError

# By the names of the library's classes, most particular first, so that this file can be read without the library.
_CODES: Final[Mapping[str, str]] = {
    "ContextWindowExceededError": "context_length_exceeded",
    "ContentPolicyViolationError": "content_filter",
    "UnsupportedParamsError": "unsupported_parameter",
    "PaymentRequiredError": "insufficient_quota",
    "AuthenticationError": "invalid_api_key",
    "PermissionDeniedError": "permission_denied",
    "NotFoundError": "model_not_found",
    "RateLimitError": "rate_limit_exceeded",
    "Timeout": "timeout",
}
_TYPES: Final[Mapping[int, str]] = {
    401: "authentication_error", 402: "insufficient_quota", 403: "permission_error", 429: "rate_limit_error",
}  # fmt: skip
_CLASS_NAMES: Final = re.compile(r"^(?:(?:litellm\.)?\w*(?:Error|Exception|Timeout): )+")
_ADVICE: Final = re.compile(r"[.,]?\s*To drop (?:these|unsupported params),? set.*", re.DOTALL)
"""How to set up LiteLLM's own proxy, which is not what answers here."""
_NAMED: Final = re.compile(r"\['(\w+)'\]")
_PASSED_HEADERS: Final = ("retry-after", "retry-after-ms")


@dataclass(frozen=True, slots=True)
class Told:
    """An error as it goes out."""

    status: int
    body: Mapping[str, Any]
    headers: Mapping[str, str]


def tell(error: BaseException) -> Told:
    """*error* in OpenAI's envelope, with the status the provider gave where there was one."""
    if isinstance(error, NotCallableError):
        return _told(400, error.message, "unsupported_parameter" if error.param else "invalid_json", error.param)
    status = getattr(error, "status_code", None)
    if not isinstance(status, int) or not 400 <= status <= 599:
        status = 500
    code = next((_CODES[kind.__name__] for kind in type(error).__mro__ if kind.__name__ in _CODES), None)
    text = str(getattr(error, "message", None) or error) or type(error).__name__
    message = _ADVICE.sub("", _CLASS_NAMES.sub("", text)).strip()
    named = _NAMED.search(message) if code == "unsupported_parameter" else None
    return _told(status, message, code, named[1] if named else None, _headers(error))


def _told(
    status: int, message: str, code: str | None, param: str | None = None, headers: Mapping[str, str] | None = None
) -> Told:
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    return Told(status, {"error": {"message": message, "type": kind, "param": param, "code": code}}, headers or {})


def _headers(error: BaseException) -> dict[str, str]:
    """What the provider said about trying again."""
    sent = getattr(getattr(error, "response", None), "headers", None)
    if not hasattr(sent, "get"):
        return {}
    return {name: str(sent.get(name)) for name in _PASSED_HEADERS if sent is not None and sent.get(name)}
