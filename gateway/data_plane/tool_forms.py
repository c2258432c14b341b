"""Tools, and the choice among them, in the words of other APIs: read as what they mean in chat completions.

Agents that speak several APIs send the one's tools to the other's address: those of responses (BerriAI/litellm#34029),
and Anthropic's (decolua/9router#2781). Members that are null go no further, as everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from adapters.types import Body
from gateway.data_plane.parameters import NULL
from gateway.errors import InvalidRequestError

_FUNCTION: Final = msgspec.Raw(b'"function"')
_FALSE: Final = msgspec.Raw(b"false")
_FUNCTIONS: Final = (_FUNCTION, msgspec.Raw(b'"custom"'), NULL)
"""What the type of a tool may be that is a function without a wrapping; it may also be missing."""
_SCHEMAS: Final = ("parameters", "input_schema")
_WORDS: Final = {"auto": "auto", "none": "none", "required": "required", "any": "required"}
_ALLOWED: Final = "allowed_tools"
_ONE_CALL: Final = "disable_parallel_tool_use"
"""Anthropic's way to ask for no more than one call, which OpenAI's chats say beside the choice."""


class _Allowed(msgspec.Struct):
    """A choice that leaves some of the tools."""

    tools: list[dict[str, msgspec.Raw]]
    mode: Literal["auto", "required"] = "auto"


_decode_allowed = msgspec.json.Decoder(_Allowed).decode
_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_text = msgspec.json.Decoder(str).decode


def read_tools(body: Body, tools: Sequence[Mapping[str, msgspec.Raw]]) -> None:
    """Put the *tools* of *body* in OpenAI's form, those that are functions; others may be a provider's own."""
    if b"null" not in bytes(body["tools"]) and all("function" in tool and "type" in tool for tool in tools):
        return
    read = [_read_tool(tool) for tool in tools]
    if read != tools:
        body["tools"] = _raw(read)


def read_choice(body: Body, choice: str | Mapping[str, msgspec.Raw]) -> None:
    """Put the ``tool_choice`` of *body* in OpenAI's form; an empty one says nothing.

    Raises `InvalidRequestError` for a list of allowed tools that is none.
    """
    if isinstance(choice, str):
        if not choice:
            del body["tool_choice"]
        return
    kind, name = _text(choice.get("type")), choice.get("name", NULL)
    if bytes(choice.get(_ONE_CALL, NULL)) == b"true":
        body.setdefault("parallel_tool_calls", _FALSE)
    if kind == _ALLOWED:
        body["tool_choice"] = _raw({"type": _ALLOWED, _ALLOWED: _read_allowed(choice)})
    elif kind in _WORDS:
        body["tool_choice"] = _raw(_WORDS[kind])
    elif kind in ("function", "tool", "") and "function" not in choice and name != NULL:
        body["tool_choice"] = _raw({"type": "function", "function": {"name": name}})
    elif not kind and "function" in choice:
        body["tool_choice"] = _raw({"type": "function", **choice})


def _read_allowed(choice: Mapping[str, msgspec.Raw]) -> Mapping[str, Any]:
    """The mode and the tools of *choice*: in chats they have a member of their own, in responses they stand in it."""
    try:
        allowed = _decode_allowed(choice[_ALLOWED] if _ALLOWED in choice else msgspec.json.encode(choice))
    except msgspec.DecodeError:
        expected = "a list of tools, and 'auto' or 'required' as its mode"
        raise InvalidRequestError(f"'tool_choice' has to give {expected}.", param="tool_choice") from None
    return {"mode": allowed.mode, "tools": [_named(tool) for tool in allowed.tools]}


def _named(tool: Mapping[str, msgspec.Raw]) -> Mapping[str, Any]:
    if "function" in tool or "name" not in tool or _text(tool.get("type")) not in ("function", "tool", ""):
        return tool
    return {"type": _FUNCTION, "function": {"name": tool["name"]}}


def _read_tool(tool: Mapping[str, msgspec.Raw]) -> Mapping[str, Any]:
    if tool.get("function", NULL) == NULL:
        return _wrapped(tool)
    kept: dict[str, Any] = {"type": _FUNCTION, **{name: value for name, value in tool.items() if value != NULL}}
    if b"null" in bytes(tool["function"]):
        try:
            members = _decode_members(tool["function"])
        except msgspec.DecodeError:
            return tool
        kept["function"] = {name: value for name, value in members.items() if value != NULL}
    return kept


def _wrapped(tool: Mapping[str, msgspec.Raw]) -> Mapping[str, Any]:
    """*tool* with its members under ``function``, where it is a function."""
    schema = next((tool[name] for name in _SCHEMAS if tool.get(name, NULL) != NULL), None)
    kind = tool.get("type", NULL)
    is_function = kind in _FUNCTIONS and "name" in tool and (schema is not None or kind == _FUNCTION)
    if not is_function:
        return {name: value for name, value in tool.items() if value != NULL}
    said = {name: tool[name] for name in ("name", "description", "strict") if tool.get(name, NULL) != NULL}
    return {"type": _FUNCTION, "function": said if schema is None else {**said, "parameters": schema}}


def _text(value: msgspec.Raw | None) -> str:
    """The text of a member; none of what is no text."""
    try:
        return _decode_text(value) if value is not None else ""
    except msgspec.DecodeError:
        return ""


def _raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))
