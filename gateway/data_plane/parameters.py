"""What OpenAI's parameters may hold. Engines are lax about it: a wrong type is often taken as absent without a word.

Ranges and types are those of OpenAI's API reference, read 2026-11-30. A null counts as absent and goes no further: some
engines refuse it (ggml-org/llama.cpp#25515). Parameters that are not listed here pass unchecked, since a provider may
know them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from adapters.types import Body
from gateway.data_plane.strict_json import check_number
from gateway.errors import InvalidRequestError

NULL: Final = msgspec.Raw(b"null")

_LEAST: Final = -(2**63)
_MOST: Final = 2**63 - 1


class Check:
    """A type that the value of a parameter has to fit, and the words for it."""

    __slots__ = ("decode", "expects")

    decode: Callable[[msgspec.Raw], Any]
    """The value; `msgspec.DecodeError` when it does not fit."""

    def __init__(self, kind: Any, expects: str) -> None:
        self.decode = msgspec.json.Decoder(kind | None).decode
        self.expects = expects


def number(low: float, high: float) -> Check:
    return Check(Annotated[float, Meta(ge=low, le=high)], f"a number from {low:g} to {high:g}")


def integer(low: int | None = None, high: int | None = None) -> Check:
    bounds = "" if low is None else f" from {low}" if high is not None else f" of at least {low}"
    bounds += "" if high is None else f" to {high}"
    # Without bounds the decoder takes integers of any length.
    least, most = _LEAST if low is None else low, _MOST if high is None else high
    return Check(Annotated[int, Meta(ge=least, le=most)], f"a whole number{bounds}")


class StreamOptions(msgspec.Struct):
    """What ``stream_options`` may hold; members that are not listed here pass unchecked."""

    include_usage: bool | None = None


BOOLEAN: Final = Check(bool, "true or false")
STRING: Final = Check(str, "a string")
OBJECT: Final = Check(dict[str, msgspec.Raw], "an object")
STREAM_OPTIONS: Final = Check(StreamOptions, "an object whose include_usage is true or false")
STOP: Final = Check(str | Annotated[list[str], Meta(max_length=128)], "a string or a list of at most 128 strings")
# Together's clients send the number of alternatives where OpenAI has a flag; adapters understand both.
LOGPROBS: Final = Check(bool | Annotated[int, Meta(ge=0, le=20)], "true, false or a whole number from 0 to 20")
TOOLS: Final = Check(Annotated[list[dict[str, msgspec.Raw]], Meta(max_length=2048)], "a list of at most 2048 tools")
STRING_OR_OBJECT: Final = Check(str | dict[str, msgspec.Raw], "a string or an object")


class _TextsOrTokens(Check):
    """One type in every list, which a union of types cannot say."""

    def __init__(self) -> None:
        token = Annotated[int, Meta(ge=0, le=_MOST)]
        tokens = Annotated[list[token], Meta(min_length=1)]
        items = Annotated[list[str | token | tokens], Meta(min_length=1)]
        super().__init__(str | items, "a string, a list of strings, a list of token ids, or a list of such lists")
        self._decode = self.decode
        self.decode = self._decode_alike

    __slots__ = ("_decode",)

    def _decode_alike(self, raw: msgspec.Raw) -> Any:
        value = self._decode(raw)
        if isinstance(value, list) and len({type(item) for item in value}) > 1:
            raise msgspec.ValidationError("a list of several types")
        return value


TEXTS_OR_TOKENS: Final[Check] = _TextsOrTokens()

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
    "stream_options": STREAM_OPTIONS,
    "logit_bias": OBJECT,
    "user": STRING,
}


_READ_ELSEWHERE: Final = frozenset({"model", "messages"})


def check_parameters(body: Body, checks: Mapping[str, Check]) -> dict[str, Any]:
    """The values of those parameters of *body* that *checks* knows; what is null is taken out of it.

    Raises `InvalidRequestError` naming the first one that does not hold what it may, and `InvalidJsonError` for a
    number that no reader can hold.
    """
    values = {}
    nulls: list[str] = []
    for name, raw in body.items():
        check = checks.get(name)
        if check is None:
            if raw == NULL:
                nulls.append(name)
            elif name not in _READ_ELSEWHERE:
                check_number(name, raw)
            continue
        try:
            value = check.decode(raw)
            if value is None:
                nulls.append(name)
            else:
                values[name] = value
        except (msgspec.DecodeError, RecursionError):
            found = bytes(raw)[:60].decode("utf-8", "replace")
            message = f"Invalid value for '{name}': {found}. Expected {check.expects}."
            raise InvalidRequestError(message, param=name) from None
    for name in nulls:
        del body[name]
    return values


def is_set(body: Body, name: str) -> bool:
    """Whether *name* is there and not null."""
    value = body.get(name)
    return value is not None and value != NULL
