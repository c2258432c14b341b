"""Takes a JSON body apart one level deep, and refuses one that two readers could understand differently."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, NoReturn

import msgspec

from adapters.types import Body
from gateway.errors import InvalidJsonError

MAX_DEPTH = 64

_Raw = msgspec.Raw
_decode_one_level = msgspec.json.Decoder(dict[str, _Raw]).decode
_decode_value = msgspec.json.Decoder(_Raw).decode
_decode_items = msgspec.json.Decoder(list[_Raw]).decode
_decode_whole = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode

_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_SAFE_DIGITS = 4
"""A number this short is a finite double, or an integer of 64 bits, whatever it says."""
_SHORT_BYTES = 1024
_LARGE_NUMBER = re.compile(rb"-?[0-9]{19,}|.*[eE].*", re.DOTALL)

_HALF_PAIR = (
    "The body holds half of a surrogate pair, such as \\ud800 without its second half, which no UTF-8 text can hold. "
    "Send whole characters."
)

_NUMBER_STARTS = b"-0123456789"
_BRACE = ord("{")
_OPENING = b"[{"


def decode_members(raw: bytes | bytearray) -> Body:
    """The members of the JSON object in *raw*, each value as the bytes the client sent.

    Values share the memory of *raw*. Raises `InvalidJsonError` for whatever is no JSON object, is not UTF-8, nests
    deeper than 64, names a member twice, or holds half a surrogate pair. What stands inside the members is for whoever
    reads it, numbers included: see `check_number`.
    """
    try:
        body = _decode_one_level(raw)
    except msgspec.DecodeError as error:
        _refuse_syntax(raw, error)
    except RecursionError:
        raise _too_deep() from None
    if not raw.isascii():
        _check_utf8(raw)
    escapes = raw.find(b"\\") >= 0
    # Whether half of a pair is missing only a decoder can tell: the backslash may itself be escaped.
    if escapes and _SURROGATE_ESCAPE.search(raw):
        _check_escapes(raw)
    # The decoder keeps the last of two members of one name. What it kept, written again, is what came, but for white
    # space between the members and for those that were lost, each of which had a colon. (A colon in a name counts in
    # both, unless it was escaped.)
    kept = _encode(body)
    if len(kept) != len(raw) and (_count(raw, b":") != _count(kept, b":") or (escapes and ":" in "".join(body))):
        _check_unique(raw)
    if _count(raw, b"{") + _count(raw, b"[") > MAX_DEPTH and _is_deeper(body.values(), MAX_DEPTH):
        raise _too_deep()
    return body


def read_one_level(raw: bytes) -> Body | None:
    """The members of the object in *raw*, as far as it is one; what else may be wrong with it is not looked at."""
    try:
        return _decode_one_level(raw)
    except (msgspec.DecodeError, RecursionError):
        return None


def read_one_value(text: bytes) -> msgspec.Raw | None:
    """*text*, if it is one JSON value that `decode_members` would let pass as that of a member; else None."""
    try:
        value = _decode_value(text)
        if not text.isascii():
            text.decode()
        if text.find(b"\\") >= 0 and _SURROGATE_ESCAPE.search(text):
            _check_escapes(text)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError, InvalidJsonError):
        return None
    brackets = 2 * len(text) - len(text.replace(b"{", b"")) - len(text.replace(b"[", b""))
    return None if brackets >= MAX_DEPTH and _is_deeper((value,), MAX_DEPTH) else value


def _count(text: bytes | bytearray, character: bytes) -> int:
    if len(text) < _SHORT_BYTES:
        return text.count(character)
    # bytes.count() looks at every byte for itself; this takes strides.
    return len(text) - len(text.replace(character, b""))


def check_number(name: str, value: msgspec.Raw) -> None:
    """Raise `InvalidJsonError` if *value* is a number, but no finite double and no integer of 64 bits."""
    if len(value) <= _SAFE_DIGITS or memoryview(value)[0] not in _NUMBER_STARTS:
        return
    text = bytes(value)
    if not _LARGE_NUMBER.fullmatch(text):
        return
    try:
        number = _decode_whole(text)
    except msgspec.DecodeError:
        number = None
    if number is None or (isinstance(number, int) and not -(2**63) <= number < 2**63):
        raise InvalidJsonError(
            f"The number {clip(text.decode())} of '{clip(name)}' is out of range. Integers have 64 bits, others are "
            "finite doubles.",
            param=name,
        )


def _too_deep() -> InvalidJsonError:
    return InvalidJsonError(f"The body nests deeper than {MAX_DEPTH} levels. Flatten it.")


def _is_deeper(inner: Iterable[msgspec.Raw], allowed: int) -> bool:
    """Whether an array or object of the values *inner* nests deeper than *allowed* levels; looks only where it may."""
    if allowed <= 0:
        return True
    for item in inner:
        text = bytes(item)
        # No value nests deeper than it has opening brackets, those in strings among them.
        if text[0] in _OPENING and _count(text, b"{") + _count(text, b"[") > allowed - 1:
            within = _decode_one_level(item).values() if text[0] == _BRACE else _decode_items(item)
            if _is_deeper(within, allowed - 1):
                return True
    return False


def _check_utf8(raw: bytes | bytearray) -> None:
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        raise InvalidJsonError(
            f"The body is not UTF-8: {error.reason} at byte {error.start}. Encode the JSON as UTF-8."
        ) from None


def _check_escapes(raw: bytes | bytearray) -> None:
    try:
        _decode_whole(raw)
    except msgspec.ValidationError:
        pass  # a number out of range, somewhere we don't read; not what is looked for here
    except msgspec.DecodeError:
        raise InvalidJsonError(_HALF_PAIR) from None


def _check_unique(raw: bytes | bytearray) -> None:
    repeated = _repeated(_pairs(raw))
    if repeated is not None:
        raise InvalidJsonError(f"The member '{clip(repeated)}' stands twice in the body. Send it once.")


def _pairs(text: bytes | bytearray) -> list[Any]:
    """Arrays as lists, objects as lists of pairs: nothing is lost, but no number is understood either."""
    # Numbers stay text: Python refuses to read integers of more than 4,300 digits.
    pairs: list[Any] = json.loads(text, object_pairs_hook=list, parse_int=str, parse_float=str)
    return pairs


def _repeated(pairs: list[tuple[str, Any]]) -> str | None:
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            return name
        seen.add(name)
    return None


def _refuse_syntax(raw: bytes | bytearray, error: msgspec.DecodeError) -> NoReturn:
    start = bytes(raw[:4])
    if not raw.strip():
        message = "The body is empty. Send a JSON object."
    elif start[:3] == b"\xef\xbb\xbf":
        message = "The body begins with a byte order mark. Send the JSON without it."
    elif start[:2] in (b"\xff\xfe", b"\xfe\xff") or 0 in start:
        message = "The body is not UTF-8 (it looks like UTF-16 or UTF-32). Encode the JSON as UTF-8."
    elif isinstance(error, msgspec.ValidationError):
        message = f"The body must be a JSON object, not {_kind(bytes(raw.lstrip()[:1]))}."
    elif _is_json(raw):
        # A more lenient parser reads it: what is left is an escape such as \\ud800 without its second half.
        message = _HALF_PAIR
    else:
        _check_utf8(raw)
        found = re.search(r"byte (\d+)", str(error))
        near = bytes(raw[int(found[1]) :][:20]) if found else b""
        message = f"The body is not valid JSON: {_reason(error)}."
        if near.startswith((b"NaN", b"Infinity")):
            message += " JSON has no NaN and no Infinity: send a number or null."
    raise InvalidJsonError(message)


def _is_json(raw: bytes | bytearray) -> bool:
    def refuse(_constant: str) -> NoReturn:
        raise ValueError

    try:
        json.loads(raw.decode(), parse_int=str, parse_float=str, parse_constant=refuse)
    except (ValueError, RecursionError):
        return False
    return True


_KINDS = {b"[": "an array", b'"': "a string", b"t": "a boolean", b"f": "a boolean", b"n": "null"}


def _kind(first: bytes) -> str:
    return _KINDS.get(first, "a number")


def _reason(error: Exception) -> str:
    """What the decoder says, without its own preamble: ``invalid character (byte 5)``."""
    text = str(error).removeprefix("JSON is malformed: ")
    return "it ends too early" if text == "Input data was truncated" else text


def clip(text: str) -> str:
    """At most 60 characters of what a client sent, safe to show in one line."""
    shown = text if len(text) <= 60 else f"{text[:59]}…"
    return shown.encode("unicode_escape").decode("ascii") if not shown.isprintable() else shown
