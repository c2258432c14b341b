"""What a request says that matters for the answer to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from adapters.repair.chunk import holds
from adapters.tool_names import own_name, plain_name

_PREFIX: Final = "functions."
"""How gpt-oss and Kimi know the tools of a client."""


def may_think(request: Mapping[str, msgspec.Raw], off: Mapping[str, Any]) -> bool:
    """Whether the request leaves it to the model to think; the members *off* switch that off."""
    if bytes(request.get("reasoning_effort", b"")) == b'"none"':
        return False
    return not off or not all(name in request and _says(msgspec.json.decode(request[name]), off[name]) for name in off)


def _says(said: Any, wanted: Any) -> bool:
    if isinstance(said, dict) and isinstance(wanted, dict):
        return all(said.get(name) == value for name, value in wanted.items())
    return bool(said == wanted)


def choices_asked_for(request: Mapping[str, msgspec.Raw]) -> int:
    """How many choices the answer is to have."""
    count = bytes(request.get("n", b"1"))
    return int(count) if count.isdigit() and len(count) < 6 else 1


def names_a_tool(request: Mapping[str, msgspec.Raw]) -> bool:
    """Whether the client named the tool that has to be called."""
    choice = request.get("tool_choice", request.get("function_call"))
    if choice is None or bytes(choice)[:1] != b"{":
        return False
    fields = msgspec.json.decode(choice)
    return "name" in fields or fields.get("type") in ("function", "custom")


def tools_in_text(request: Mapping[str, msgspec.Raw]) -> frozenset[str]:
    """The tools that a call written as text may name; none where text that looks like a call is meant as text."""
    if "tools" not in request or holds(request.get("response_format")):
        return frozenset()
    if bytes(request.get("tool_choice", b"")) == b'"none"':
        return frozenset()
    names = _names(request["tools"])
    return names.union(map(plain_name, names))


def begins_a_name(request: Mapping[str, msgspec.Raw], name: str) -> bool:
    """Whether *name* is the beginning of a tool's name, and no tool's name itself."""
    tools = request.get("tools")
    if tools is None or msgspec.json.encode(name) in bytes(tools):
        return False  # nearly always, and without decoding the tools
    own = _names(tools)
    names = own.union(map(plain_name, own))
    return name not in names and any(one.startswith(name) for one in names)


def offered_name(request: Mapping[str, msgspec.Raw], name: str) -> str:
    """The tool that *name* means: some put blanks, their own prefix, or marks of the model around it.

    Where the target knows it by its plain name, the client's own is told.
    """
    tools = request.get("tools")
    if tools is None or msgspec.json.encode(name) in bytes(tools):
        return name  # nearly always
    plain = name.partition("<|")[0].strip().removeprefix(_PREFIX)
    names = _names(tools)
    return plain if plain in names else own_name(names, plain) or name


def _names(encoded: msgspec.Raw) -> frozenset[str]:
    tools = msgspec.json.decode(encoded)
    found = (tool.get("function") for tool in tools if isinstance(tool, dict)) if isinstance(tools, list) else ()
    return frozenset(str(function["name"]) for function in found if isinstance(function, dict) and "name" in function)
