"""Reads what an error body says, whatever its envelope: every provider wraps the same few fields in another way."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from adapters.rate_limits import parse_reset

_STATUS: Final = re.compile(r"[0-9]{1,6}")
_MOST_PLAIN_BYTES: Final = 400
_MOST_PLACES: Final = 5
_MOST_PLAIN_LINES: Final = 3
_DEEPEST: Final = 3
_TEXT_FIELDS: Final = ("message", "detail", "msg", "error_message", "reason", "errmsg", "error_msg", "status_msg")
_CODE_FIELDS: Final = ("code", "status_code", "errcode")
_WAITS: Final = ("estimated_time", "retry_after", "retry_after_seconds", "retryDelay")
"""Hugging Face's servers tell how long a model takes to load; others what stands in a header elsewhere."""
_LONGEST_WAIT: Final = 86_400


@dataclass(frozen=True, slots=True)
class ErrorFields:
    """What an error body says, whatever its envelope."""

    message: str = ""
    type: str = ""
    code: str = ""
    param: str | None = None
    status: int | None = None
    """A status given inside the body, as vLLM and llama.cpp do with an integer ``code``."""
    failed_generation: str | None = None
    """What the model wrote, where the provider would not pass it on."""
    retry_after_seconds: float | None = None
    """The wait the body itself suggests."""


def read_error(body: bytes) -> ErrorFields | None:
    """The fields of an error body, or None when it says nothing that could be understood (U24).

    Understands ``{error: {...}}``, ``{error: "text", error_type}``, ``{message, type, code}``,
    ``{object: "error", ...}``, ``{errors: [{...}]}``, ``{detail: "text"}``, the list of faults FastAPI puts in
    ``detail``, lists of these, a JSON string, and a few short lines of plain text. A page of HTML is none of them.
    """
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return _plain(body)
    return error_fields(decoded)


def error_fields(decoded: Any) -> ErrorFields | None:
    """As `read_error`, from what was decoded already."""
    return _read(decoded, 0)


def _read(decoded: Any, depth: int) -> ErrorFields | None:
    if isinstance(decoded, str):
        return ErrorFields(message=decoded) if decoded.strip() else None
    if isinstance(decoded, list):
        # Gemini's OpenAI endpoint wraps its one error in a list.
        return _read(decoded[0], depth + 1) if decoded and isinstance(decoded[0], dict) and depth < _DEEPEST else None
    if not isinstance(decoded, dict):
        return None
    inner = decoded.get("error", decoded)
    if inner is True or (inner is decoded and isinstance(decoded.get("base_resp"), dict)):
        inner = decoded.get("base_resp", decoded)  # MiniMax, beside what would be the answer
    if inner is decoded and isinstance(decoded.get("errors"), list) and "message" not in decoded:
        return _read(decoded["errors"], depth)
    if isinstance(inner, str):
        return _flat_text(decoded, inner)
    if not isinstance(inner, dict):
        return None
    message, param, cause = _message(inner, depth)
    code, status = next((inner[name] for name in _CODE_FIELDS if inner.get(name) is not None), None), None
    if isinstance(code, str) and _STATUS.fullmatch(code):
        code = int(code)
    if isinstance(code, int) and not isinstance(code, bool):
        status, code = (code if 400 <= code < 600 else None), None
    kind = _text(inner.get("type")) or _text(inner.get("error_type"))
    if cause is not None:  # what a proxy in between says of it is of no use
        code, kind, param = _text(code) or cause.code, cause.type or kind, param or cause.param
        status = status or cause.status
    if not message and not code and not kind:
        return _read(inner["error"], depth + 1) if inner is not decoded and "error" in inner and depth < 2 else None
    if isinstance(inner.get("param"), str):
        param = inner["param"]
    failed = inner.get("failed_generation")
    return ErrorFields(
        message, kind, _text(code), param, status, failed if isinstance(failed, str) else None, _wait(decoded, inner)
    )


def _flat_text(decoded: dict[str, Any], text: str) -> ErrorFields:
    """``{error: "text"}``; some frameworks put a mere title there and say more in ``message``."""
    told, cause = decoded.get("message"), _within(text)
    return ErrorFields(
        message=told if isinstance(told, str) and told else cause.message if cause is not None else text,
        type=_text(decoded.get("error_type")),
        code=_text(decoded.get("error_code")) or _text(decoded.get("code")),
        retry_after_seconds=_wait(decoded, decoded),
    )


def _message(inner: dict[str, Any], depth: int) -> tuple[str, str | None, ErrorFields | None]:
    """The text of an error object, the parameter a list of faults is about, and the error that it is made of."""
    value = next((inner[name] for name in _TEXT_FIELDS if inner.get(name) is not None), "")
    if isinstance(value, str):
        cause = _within(value) or _behind(inner)
        return (cause.message if cause is not None else value), None, cause
    if isinstance(value, list) and value and all(isinstance(fault, dict) and "msg" in fault for fault in value):
        return *_faults(value), None
    if isinstance(value, dict) and depth < _DEEPEST and (nested := _read(value, depth + 1)) is not None:
        return nested.message, nested.param, None
    return msgspec.json.encode(value).decode(), None, None


def _within(text: str) -> ErrorFields | None:
    """The error body that a proxy in between has put into the message."""
    if not text.startswith(("{", "[")):
        return None
    try:
        inner = _read(msgspec.json.decode(text), _DEEPEST - 1)
    except (msgspec.DecodeError, RecursionError):
        return None
    return inner if inner is not None and inner.message else None


def _behind(inner: dict[str, Any]) -> ErrorFields | None:
    """The error that OpenRouter was told by a provider, of which its own message says nothing."""
    metadata = inner.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    if isinstance(raw, dict):
        raw = msgspec.json.encode(raw).decode()
    return (_within(raw) or _plain(raw.encode())) if isinstance(raw, str) else None


def _faults(faults: list[dict[str, Any]]) -> tuple[str, str | None]:
    """FastAPI's list of faults as one sentence; what it repeats of the request is left out."""
    told, first = [], None
    for fault in faults[:_MOST_PLACES]:
        places = fault.get("loc")
        parts = [str(part) for part in places if part != "body"] if isinstance(places, list) else []
        place = ".".join(parts)
        first = first or place or None
        told.append(f"{place}: {fault['msg']}" if place else str(fault["msg"]))
    more = len(faults) - len(told)
    return "; ".join(told) + (f"; and {more} more" if more > 0 else ""), first


def _wait(*objects: dict[str, Any]) -> float | None:
    """The seconds to wait, as told beside the error or within it."""
    for known in objects:
        details = known.get("details")
        places = [known, known.get("metadata"), *(details if isinstance(details, list) else ())]
        for place in places:
            for name in _WAITS if isinstance(place, dict) else ():
                value = place.get(name)
                if isinstance(value, str):  # Google's: "17s"
                    value = parse_reset(value)
                if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < _LONGEST_WAIT:
                    return float(value)
    return None


def _plain(body: bytes) -> ErrorFields | None:
    """A few short lines of text; anything like markup, a broken JSON object or a dump is nothing to show."""
    text = body[: _MOST_PLAIN_BYTES + 1].strip()
    if not text or len(text) > _MOST_PLAIN_BYTES or text[:1] in (b"<", b"{", b"[", b'"'):
        return None
    try:
        line = text.decode()
    except UnicodeDecodeError:
        return None
    lines = [part.strip(" \t\r") for part in line.split("\n")]
    if len(lines) > _MOST_PLAIN_LINES or "<" in line or not all(part.isprintable() for part in lines):
        return None
    return ErrorFields(message=" ".join(lines))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
