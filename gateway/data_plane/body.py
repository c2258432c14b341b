"""A request's body: its members as the client sent them, and typed reading of single ones."""

from __future__ import annotations

import msgspec

from adapters.types import Body
from gateway.data_plane.strict_json import clip, decode_members
from gateway.errors import InvalidRequestError

_decode = msgspec.json.Decoder().decode


def parse_body(raw: bytes | bytearray) -> Body:
    """The members of a request's body, each as the bytes the client sent; see `decode_members` for what is refused."""
    return decode_members(raw)


def read_str(body: Body, name: str, *, max_length: int | None = None) -> str | None:
    """A string of at most *max_length* characters, or None when the parameter is absent or null."""
    value = _value(body, name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise _invalid(name, _describe(value), "a string")
    if max_length is not None and len(value) > max_length:
        raise _invalid(name, f"a string of {len(value)} characters", f"at most {max_length} characters")
    return value


def read_bool(body: Body, name: str) -> bool | None:
    """A boolean, or None when the parameter is absent or null."""
    value = _value(body, name)
    if value is None or isinstance(value, bool):
        return value
    raise _invalid(name, _describe(value), "true or false")


def _value(body: Body, name: str) -> object:
    raw = body.get(name)
    if raw is None:
        return None
    value: object = _decode(raw)
    return value


def _describe(value: object) -> str:
    """What was found, by type; numbers and booleans are told as they are, all else may be private."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return clip(str(value))
        case str():
            return "a string"
        case list():
            return "an array"
        case _:
            return "an object"


def _invalid(name: str, found: str, allowed: str) -> InvalidRequestError:
    return InvalidRequestError(f"Invalid value for '{name}': found {found}, allowed is {allowed}.", param=name)
