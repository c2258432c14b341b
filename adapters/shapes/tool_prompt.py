"""Tools in words: what a model without them is told, and how a history with calls in it is retold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from adapters.shapes.bodies import Message
from adapters.shapes.tool_schema import Tool

_ROLES: Final = ("tool", "function")


def instruction(tools: Sequence[Tool], *, may_speak: bool, sole: bool) -> str:
    """What the model has to know to call *tools* by answering in JSON."""
    told = "\n".join(_told(tool) for tool in tools)
    if sole:
        return f"Call this function. Answer with nothing but its arguments, as one JSON object.\n{told}"
    how = 'To call functions, answer {"tool_calls": [{"name": ..., "arguments": {...}}]}.'
    if may_speak:
        how += ' Where no function is needed, answer {"answer": "..."} with your words in it.'
    return f"You can call these functions:\n{told}\nAnswer with one JSON object. {how}"


def _told(tool: Tool) -> str:
    described = f": {tool.description}" if tool.description else ""
    return f"- {tool.name}{described}\n  arguments: {_encoded(tool.parameters)}"


def retold(messages: Sequence[Message]) -> list[Message]:
    """*messages* without roles and members that a template without tools cannot render.

    Calls become what the model would have answered by `instruction`, results what the user says next; several results
    in a row become one message, since many templates want the roles in turn.
    """
    out: list[Message] = []
    names: dict[str, str] = {}
    results: list[str] = []
    for message in messages:
        if message.get("role") in _ROLES:
            name = names.get(str(message.get("tool_call_id"))) or message.get("name") or "the function"
            results.append(f"Result of {name}: {_text(message.get('content'))}")
            continue
        if results:
            out.append({"role": "user", "content": "\n".join(results)})
            results = []
        calls = _calls_of(message)
        names |= {str(call.get("id")): _name(call) for call in calls}
        out.append(_said(message, calls) if calls else message)
    if results:
        out.append({"role": "user", "content": "\n".join(results)})
    return out


def _calls_of(message: Message) -> list[dict[str, Any]]:
    calls = message.get("tool_calls")
    if isinstance(calls, list) and calls:
        return [call for call in calls if isinstance(call, dict)]
    legacy = message.get("function_call")
    return [{"function": legacy}] if isinstance(legacy, dict) else []


def _said(message: Message, calls: list[dict[str, Any]]) -> Message:
    made = {"tool_calls": [{"name": _name(call), "arguments": _arguments(call)} for call in calls]}
    text = _text(message.get("content"))
    content = f"{text}\n{_encoded(made)}" if text else _encoded(made)
    kept = {name: value for name, value in message.items() if name not in ("tool_calls", "function_call")}
    return {**kept, "content": content}


def _function(call: dict[str, Any]) -> dict[str, Any]:
    function = call.get("function")
    return function if isinstance(function, dict) else {}


def _name(call: dict[str, Any]) -> str:
    return str(_function(call).get("name") or "")


def _arguments(call: dict[str, Any]) -> Any:
    arguments = _function(call).get("arguments")
    if not isinstance(arguments, str):
        return arguments or {}
    try:
        return msgspec.json.decode(arguments or "{}")
    except msgspec.DecodeError:
        return arguments


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _encoded(value: Any) -> str:
    return msgspec.json.encode(value).decode()
