"""What OpenAI's parameters may hold. Engines are lax about it: a wrong type is often taken as absent without a word.

Ranges and types are those of OpenAI's API reference, read 2026-11-30. A null counts as absent everywhere; parameters
that are not listed here pass unchecked, since a provider may know them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from adapters.types import Body
from gateway.errors import InvalidRequestError

_decode = msgspec.json.decode
_NULL: Final = b"null"


class Check:
    """A predicate over a decoded value, and the words for what it demands."""

    __slots__ = ("expects", "holds")

    def __init__(self, holds: Callable[[Any], bool], expects: str) -> None:
        self.holds = holds
        self.expects = expects


def number(low: float, high: float) -> Check:
    return Check(
        lambda value: isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high,
        f"a number from {low:g} to {high:g}",
    )


def integer(low: int | None = None, high: int | None = None) -> Check:
    bounds = "" if low is None else f" from {low}" if high is not None else f" of at least {low}"
    bounds += "" if high is None else f" to {high}"
    return Check(
        lambda value: (
            isinstance(value, int)
            and not isinstance(value, bool)
            and (low is None or value >= low)
            and (high is None or value <= high)
        ),
        f"a whole number{bounds}",
    )


def _stops(value: Any) -> bool:
    if isinstance(value, str):
        return True
    return isinstance(value, list) and len(value) <= 128 and all(isinstance(item, str) for item in value)


BOOLEAN: Final = Check(lambda value: isinstance(value, bool), "true or false")
STRING: Final = Check(lambda value: isinstance(value, str), "a string")
OBJECT: Final = Check(lambda value: isinstance(value, dict), "an object")
STOP: Final = Check(_stops, "a string or a list of strings")
# Together's clients send the number of alternatives where OpenAI has a flag; adapters understand both.
LOGPROBS: Final = Check(
    lambda value: isinstance(value, bool) or (isinstance(value, int) and 0 <= value <= 20),
    "true, false or a whole number from 0 to 20",
)
TOOLS: Final = Check(
    lambda value: isinstance(value, list) and len(value) <= 2048 and all(isinstance(tool, dict) for tool in value),
    "a list of at most 2048 tools",
)
STRING_OR_OBJECT: Final = Check(lambda value: isinstance(value, str | dict), "a string or an object")

SAMPLING: Final[Mapping[str, Check]] = {
    "temperature": number(0, 2),
    "top_p": number(0, 1),
    "frequency_penalty": number(-2, 2),
    "presence_penalty": number(-2, 2),
    "seed": integer(),
    "n": integer(1, 128),
    "max_tokens": integer(1),
    "stop": STOP,
    "stream": BOOLEAN,
    "stream_options": OBJECT,
    "logit_bias": OBJECT,
    "user": STRING,
}


def check_parameters(body: Body, checks: Mapping[str, Check]) -> None:
    """Raise `InvalidRequestError` naming the first parameter of *body* that does not hold what it may."""
    for name in body.keys() & checks.keys():
        raw = bytes(body[name])
        if raw != _NULL:
            check = checks[name]
            if not check.holds(_decode(raw)):
                found = raw[:60].decode("utf-8", "replace")
                raise InvalidRequestError(f"Invalid value for '{name}': {found}. Expected {check.expects}.", param=name)


def is_set(body: Body, name: str) -> bool:
    """Whether *name* is there and not null."""
    value = body.get(name)
    return value is not None and bytes(value) != _NULL
