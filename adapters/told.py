"""What a refusal says: which parameter it is about, in which words, and whether that is taken at all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from adapters.errors import ProviderError
from adapters.refusal_words import refused_parameter
from adapters.types import Body, FailureKind

_SHOWN: Final = 40
_LEAST_TEXT: Final = 12
"""Shorter texts are names of roles, types and tools, which a refusal may well have to repeat."""

_TEMPLATE: Final = "Jinja Exception: "

# Where a wording names a parameter and its own reader (`refusal_words`) does not: pydantic's places, and models that
# "do not support the parameter x".
_NAMED: Final = re.compile(
    r"""['"]?loc['"]?\s*:\s*[(\[]\s*['"]body['"]\s*,\s*['"](?P<loc>\w+)"""
    r"""|\bbody\.(?P<path>\w+)"""
    r"""|\bdoes not support (?:the )?(?:parameter|argument)s? [`'"]?(?P<lacking>\w+)"""
    r"""|\b(?:parameter|argument)s? (?:is |are )?not supported(?: \w+ this model)?: [`'"]?(?P<told>\w+)"""
    r"""|\b[Uu]nsupported value: [`'"]?(?P<value>\w+)"""
    r"""|\bInvalid '(?P<wrong>\w+)':"""
    r"""|[`'"]?(?P<first>\w+)[`'"]? and [`'"]?(?P<second>\w+)[`'"]? cannot both be""",
)
_REFUSED: Final = re.compile(
    r"extra_forbidden|not permitted|not supported|unsupported|unrecogni[sz]ed|unknown|unexpected|cannot both be"
    r"|does not support|not allowed|invalid (?:argument|parameter)|additional properties|only allowed when|not enabled",
    re.IGNORECASE,
)
_HUMP: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


class Told(NamedTuple):
    """What a refusal says."""

    named: str
    """The parameter that it is about, in OpenAI's spelling; empty where none is named."""
    text: str
    """Its words, in lower case, with the place that it names."""
    unsupported: bool
    """Whether something is not taken at all, rather than wrong."""


def told_by(failure: ProviderError, body: Body) -> Told:
    """What *failure* says of the request *body*, without what it only repeats of it."""
    # In front of what a template has to say stand lines of the template.
    message, param = failure.message.rpartition(_TEMPLATE)[2], failure.param or ""
    # Names of models are no words of the client's own: it has them from the gateway.
    said = [msgspec.json.decode(value) for name, value in body.items() if name != "model"]
    heads = {text[:_SHOWN] for text in _texts(said)}
    repeated = [place for head in heads if len(head) >= _LEAST_TEXT and (place := message.find(head)) >= 0]
    if repeated:
        # A client must not teach what it says itself; whatever follows may be its own words, too.
        message = message[: min(repeated)]
        param = refused_parameter(message) or ""
    found = _NAMED.search(message)
    groups = found.groupdict() if found is not None else {}
    name = groups.get("second") or next((value for value in groups.values() if value), None) or param
    name = name.removeprefix("body.").partition(".")[0].partition("[")[0]
    unsupported = _REFUSED.search(message) is not None or (
        failure.kind is FailureKind.UNSUPPORTED_PARAMETER and not repeated
    )
    return Told(_HUMP.sub("_", name).lower(), f"{param} {message}".lower(), unsupported)


def mentioned(told: Told, body: Body) -> str:
    """The first parameter of *body* that *told* shows as a name, whatever the wording; empty where there is none."""
    places = ((_place(told.text, name), name) for name in body if name != "user")
    return min(((place, name) for place, name in places if place >= 0), default=(0, ""))[1]


def _place(text: str, name: str) -> int:
    spelled = f"(?:{re.escape(name)}|{re.escape(name.replace('_', ''))})"
    # A name of one word is a word of English, too: it has to be quoted, or end the text as what it is about.
    found = re.search(rf"[`'\"]{spelled}[`'\"]|: {spelled}\s*$", text) or (
        re.search(rf"(?<![\w.]){spelled}(?!\w)", text) if "_" in name else None
    )
    return found.start() if found is not None else -1


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
