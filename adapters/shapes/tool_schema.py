"""The tools of a request as one JSON schema for the answer, and the calls that such an answer makes."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from adapters.patches import invalid
from adapters.shapes.json_schema import Schema

MOST_CALLS: Final = 8
"""In one emulated answer. A small model that is free to go on would call tools until its tokens run out."""
_NO_ARGUMENTS: Final = {"type": "object", "properties": {}, "additionalProperties": False}
_ANY_NAME: Final = re.compile(r"[^A-Za-z0-9_]")
_SHOWN: Final = 60
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that may be called."""

    name: str
    description: str
    parameters: Json


def read_tools(tools: Any) -> list[Tool]:
    """The functions in ``tools``; BAD_REQUEST for anything else."""
    found: list[Tool] = []
    for number, tool in enumerate(tools if isinstance(tools, list) else ()):
        where = f"tools[{number}]"
        function = tool.get("function") if isinstance(tool, dict) else None
        if not isinstance(function, dict) or tool.get("type", "function") != "function":
            raise invalid(where, f"'{where}' is not a function, which is all that can be called here.")
        name, parameters = function.get("name"), function.get("parameters")
        if not isinstance(name, str) or not name:
            raise invalid(f"{where}.function.name", "A tool needs a name.")
        if any(name == other.name for other in found):
            raise invalid(f"{where}.function.name", f"Two tools are called {name[:_SHOWN]!r}.")
        if parameters is not None and not isinstance(parameters, dict):
            raise invalid(f"{where}.function.parameters", "The parameters of a tool are a JSON schema: an object.")
        Schema(parameters or _NO_ARGUMENTS, f"{where}.function.parameters")
        found.append(Tool(name, str(function.get("description") or ""), parameters or _NO_ARGUMENTS))
    return found


def choose(tools: Sequence[Tool], choice: Any) -> tuple[str, list[Tool]]:
    """The mode that ``tool_choice`` asks for (``none``, ``auto``, ``required``), and the tools left to choose from."""
    if choice is None:
        return "auto", list(tools)
    if choice == "any":
        return "required", list(tools)
    if isinstance(choice, str):
        if choice not in ("none", "auto", "required"):
            raise invalid("tool_choice", "'tool_choice' has to be none, auto, required, or name a function.")
        return choice, list(tools)
    if isinstance(choice, dict) and choice.get("type") == "allowed_tools":
        allowed = choice.get("allowed_tools") or {}
        names = [_named(entry) for entry in allowed.get("tools") or ()]
        return ("required" if allowed.get("mode") == "required" else "auto"), _only(tools, names)
    return "required", _only(tools, [_named(choice)])


def _named(choice: Any) -> str:
    function = choice.get("function") if isinstance(choice, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(name, str):
        raise invalid("tool_choice", "'tool_choice' has to be none, auto, required, or name a function.")
    return name


def _only(tools: Sequence[Tool], names: Sequence[str]) -> list[Tool]:
    known = {tool.name: tool for tool in tools}
    for name in names:
        if name not in known:
            raise invalid("tool_choice", f"'tool_choice' names {name[:_SHOWN]!r}, which is not among the tools.")
    return [known[name] for name in names]


class CallFormat:
    """What an answer has to look like so that calls can be read out of it.

    One forced tool is the plainest case: the answer is its arguments. Otherwise it is an object with ``tool_calls``
    or, where the model may also speak, ``answer``.
    """

    __slots__ = ("_sole", "_speaks", "schema")

    def __init__(self, tools: Sequence[Tool], *, may_speak: bool, parallel: bool) -> None:
        self._speaks = may_speak
        self._sole = tools[0].name if len(tools) == 1 and not may_speak and not parallel else None
        if self._sole is not None:
            self.schema = tools[0].parameters
            return
        definitions: Json = {}
        calls = [_call(tool, definitions) for tool in tools]
        items = calls[0] if len(calls) == 1 else {"anyOf": calls}
        most = MOST_CALLS if parallel else 1
        calling = _object(tool_calls={"type": "array", "items": items, "minItems": 1, "maxItems": most})
        speaking = _object(answer={"type": "string"})
        self.schema = {"anyOf": [speaking, calling]} if may_speak else calling
        if definitions:
            self.schema = {**self.schema, "$defs": definitions}

    @property
    def sole(self) -> bool:
        """Whether the answer is the arguments of the one call there can be."""
        return self._sole is not None

    def read(self, text: str) -> tuple[str | None, list[Json]]:
        """Text and calls of an answer that conforms."""
        if self._sole is not None:
            return None, [made_call(self._sole, text)]
        value = msgspec.json.decode(text)
        if "tool_calls" not in value:
            return value["answer"], []
        made = [made_call(call["name"], _encoded(call["arguments"])) for call in value["tool_calls"]]
        return None, made

    def read_cut(self, text: str) -> tuple[str | None, list[Json]]:
        """As much of an answer that broke off at its token limit as can be told."""
        if self._sole is not None:
            return None, [made_call(self._sole, text)]
        begun = _BEGUN_ANSWER.match(text) if self._speaks else None
        return (_unescaped(begun.group(1)) if begun else ""), []


_BEGUN_ANSWER: Final = re.compile(r'\s*\{\s*"answer"\s*:\s*"((?:[^"\\]|\\.)*)', re.DOTALL)
_HALF_ESCAPE: Final = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?$")


def made_call(name: str, arguments: str) -> Json:
    """A tool call with an id of our making."""
    call_id = f"call_{secrets.token_hex(12)}"
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _encoded(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _unescaped(text: str) -> str:
    try:
        decoded: str = msgspec.json.decode(f'"{_HALF_ESCAPE.sub("", text)}"')
    except msgspec.DecodeError:
        return text
    return decoded


def _object(**properties: Any) -> Json:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _call(tool: Tool, definitions: Json) -> Json:
    return _object(name={"type": "string", "enum": [tool.name]}, arguments=_hoisted(tool, definitions))


def _hoisted(tool: Tool, definitions: Json) -> Json:
    """The tool's parameters with their definitions moved to *definitions*: references start at the root."""
    prefix = _ANY_NAME.sub("_", tool.name)
    moved: dict[str, str] = {"#": f"#/$defs/{prefix}"}
    for holder in ("$defs", "definitions"):
        own = tool.parameters.get(holder)
        for name in own if isinstance(own, dict) else ():
            moved[f"#/{holder}/{name}"] = f"#/$defs/{prefix}_{_ANY_NAME.sub('_', name)}"
    bare = {name: value for name, value in tool.parameters.items() if name not in ("$defs", "definitions", "$schema")}
    if not _refers(tool.parameters):
        return bare
    for holder in ("$defs", "definitions"):
        own = tool.parameters.get(holder)
        for name, schema in own.items() if isinstance(own, dict) else ():
            definitions[moved[f"#/{holder}/{name}"].removeprefix("#/$defs/")] = _moved(schema, moved)
    definitions[prefix] = _moved(bare, moved)
    return {"$ref": moved["#"]}


def _refers(schema: Any) -> bool:
    if isinstance(schema, Mapping):
        return "$ref" in schema or any(map(_refers, schema.values()))
    return isinstance(schema, list) and any(map(_refers, schema))


def _moved(schema: Any, moved: Mapping[str, str]) -> Any:
    if isinstance(schema, list):
        return [_moved(item, moved) for item in schema]
    if not isinstance(schema, dict):
        return schema
    changed = {name: _moved(value, moved) for name, value in schema.items()}
    reference = schema.get("$ref")
    if isinstance(reference, str):
        changed["$ref"] = _target(reference, moved)
    return changed


def _target(reference: str, moved: Mapping[str, str]) -> str:
    """Where *reference* points after the move; the longest definition that it begins with tells."""
    for old in sorted(moved, key=len, reverse=True):
        if reference == old or reference.startswith(old + "/"):
            return moved[old] + reference[len(old) :]
    return reference
