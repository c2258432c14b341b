"""The arguments of tool calls: JSON in a text, however a provider or a model has put them."""

from __future__ import annotations

from typing import Any, Final

import msgspec

_NO_ARGUMENTS: Final = frozenset(("{}", "null"))
"""What stands for no arguments; what follows are all there are (BerriAI/litellm#4537, envoyproxy/ai-gateway#1465)."""


def arguments_text(arguments: Any) -> str:
    """*arguments* as the text clients expect: an object becomes its JSON, nothing becomes nothing."""
    if isinstance(arguments, str):
        return arguments
    return "" if arguments is None else msgspec.json.encode(arguments).decode()


def is_object(text: str) -> bool:
    """Whether *text* is one whole JSON object."""
    stripped = text.strip()
    if stripped[:1] != "{" or stripped[-1:] != "}":
        return False
    try:
        msgspec.json.decode(stripped)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def first_arguments(text: str, announced: bool) -> str:
    """How the arguments of a call begin, of which *text* is the first piece, and which is *announced* already.

    An empty object that comes with the call's name is said at the end, if it has stayed so; a text that is the JSON of
    the arguments' JSON is read once more.
    """
    bare = text.strip()
    if bare[:1] == '"' and bare[-1:] == '"':
        try:
            inner = msgspec.json.decode(bare)
        except (msgspec.DecodeError, RecursionError):
            return text
        return inner if isinstance(inner, str) and is_object(inner) else text
    return "" if bare in _NO_ARGUMENTS and not (announced and bare == "{}") else text


def same_arguments(text: str, other: str) -> bool:
    """Whether two texts say the same, be it with other spaces or in another order."""
    if text == other:
        return True
    return is_object(text) and is_object(other) and msgspec.json.decode(text) == msgspec.json.decode(other)


def written_calls(text: str, tools: frozenset[str]) -> list[dict[str, Any]] | None:
    """The calls that a model wrote into its text as JSON, if that is all the text is and each names one of *tools*."""
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    entries = found if isinstance(found, list) else [found]
    calls: list[dict[str, Any]] = []
    for entry in entries:
        if not isinstance(entry, dict):
            return None
        inner = entry["function"] if isinstance(entry.get("function"), dict) else entry
        name = inner.get("name", entry.get("function"))
        arguments = next((inner[key] for key in ("arguments", "parameters") if key in inner), None)
        if not isinstance(name, str) or name not in tools or not isinstance(arguments, (dict, str, type(None))):
            return None
        calls.append({"type": "function", "function": {"name": name, "arguments": arguments_text(arguments) or "{}"}})
    return calls or None
