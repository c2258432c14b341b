"""Durations and sizes as people write them: `30s`, `500ms`, `90d`, `20MiB`."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES = {"B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3, "KB": 1000, "MB": 1000**2, "GB": 1000**3}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)\Z")
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)(B|KiB|MiB|GiB|KB|MB|GB)\Z")


def seconds(value: Any) -> float:
    """`"500ms"` as 0.5; a bare number other than 0 is refused, since nothing says what it counts."""
    if isinstance(value, float) or value == 0:
        return float(value)
    match = _DURATION.match(value) if isinstance(value, str) else None
    if match is None:
        hint = f" Did you mean '{value}s'?" if _is_number(value) else ""
        raise ValueError(f"'{value}' is not a duration.{hint}  (500ms, 30s, 5m, 2h, 90d)")
    return float(match[1]) * _SECONDS[match[2]]


def size_bytes(value: Any) -> int:
    """`"20MiB"` as 20971520; a bare number counts bytes."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and value.isdigit():
        return int(value)
    match = _SIZE.match(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"'{value}' is not a size.  (512KiB, 20MiB, 1GiB)")
    return int(float(match[1]) * _BYTES[match[2]])


def size_text(value: int) -> str:
    """20971520 as `"20MiB"`: the largest unit that leaves a whole number."""
    unit = next(unit for unit in ("GiB", "MiB", "KiB", "B") if value % _BYTES[unit] == 0)
    return f"{value // _BYTES[unit]}{unit}"


def _is_number(value: Any) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, str) and value.isdigit())


Seconds = Annotated[
    float,
    BeforeValidator(seconds),
    Field(gt=0, le=366 * 86400),
    PlainSerializer(lambda value: f"{value:g}s", return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "pattern": "^[0-9]+(\\.[0-9]+)?(ms|s|m|h|d)$", "examples": ["30s", "5m"]}),
]
"""A duration; seconds once read."""

Bytes = Annotated[
    int,
    BeforeValidator(size_bytes),
    Field(gt=0),
    PlainSerializer(size_text, return_type=str, when_used="json"),
    WithJsonSchema({"type": ["string", "integer"], "examples": ["20MiB"]}),
]
"""A size; bytes once read."""
