"""Keeps secrets, control bytes and overlong client strings out of everything that is written down."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

MASK: Final = "***"
CLIENT_STRING_BYTES: Final = 256
_EVENT_BYTES: Final = 2_048
_TRACEBACK_BYTES: Final = 32_768

# What looks like a key is masked even when nobody registered it: a client may have put its key in the wrong place.
_SHAPES: Final = (
    r"(?P<userinfo>(?<=://)[^/\s@:]*:[^/\s@]+(?=@))"
    r"|(?P<scheme>\b(?:bearer|basic)\s+)[^\s\"',;]+"
    r"|(?P<query>\b(?:api[-_]?key|x-api-key|access[-_]?token|token|secret|password|authorization)[\"']?\s*[=:]\s*[\"']?)"
    r"(?!\s*(?:bearer|basic)\b)[^\s&\"',;}]+"
    r"|(?P<prefix>(?<![A-Za-z0-9])(?:gw-|sk-|gsk_|csk-|fw_|hf_|tgp_v1_))[A-Za-z0-9_\-]{8,}"
)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_CONTROL_BUT_NEWLINE: Final = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")

_registered: set[str] = set()
_pattern = re.compile(_SHAPES, re.IGNORECASE)


def register_secret(value: str) -> None:
    """Mask *value*, plain or percent-encoded, from now on; one of fewer than 6 characters would mask too much."""
    global _pattern
    if len(value) < 6:
        return
    _registered.update((value, quote(value, safe="")))
    exact = "|".join(re.escape(secret) for secret in sorted(_registered, key=len, reverse=True))
    _pattern = re.compile(f"(?-i:{exact})|{_SHAPES}", re.IGNORECASE)


def mask(text: str) -> str:
    """*text* with every registered secret and everything shaped like a key replaced by ``***``."""
    return _pattern.sub(_masked, text)


def _masked(match: re.Match[str]) -> str:
    kept = match["scheme"] or match["query"] or match["prefix"] or ""
    return kept + MASK


def client_string(text: str, limit_bytes: int = CLIENT_STRING_BYTES) -> str:
    """*text* as it may stand in a log: masked, control characters escaped, cut to *limit_bytes* of UTF-8."""
    # Masked before it is cut, or the first half of a key would no longer look like one.
    return _cut(_CONTROL.sub(_escape, mask(text)), limit_bytes)


def clean_event(_logger: Any, _method: str, event: Mapping[str, Any]) -> Mapping[str, Any]:
    """A structlog processor: everything in the event is safe to write, however deep it is nested."""
    return {client_string(str(key)): _clean(key, value) for key, value in event.items()}


def _clean(key: Any, value: Any, depth: int = 0) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping) and depth < 4:
        return {client_string(str(k)): _clean(k, v, depth + 1) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset) and depth < 4:
        return [_clean(key, item, depth + 1) for item in value]
    text = value.decode("utf-8", "replace") if isinstance(value, bytes | bytearray) else str(value)
    if key == "exception":
        return _cut(_CONTROL_BUT_NEWLINE.sub(_escape, mask(text)), _TRACEBACK_BYTES)
    return client_string(text, _EVENT_BYTES if key == "event" else CLIENT_STRING_BYTES)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def _cut(text: str, limit_bytes: int) -> str:
    # Most strings are short: a character takes at most four bytes.
    if len(text) * 4 <= limit_bytes:
        return text
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= limit_bytes:
        return encoded.decode()
    return encoded[: limit_bytes - 3].decode("utf-8", "ignore") + "…"
