"""``functions`` and ``function_call``, OpenAI's first way to call, as ``tools`` for targets that know only these."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from adapters.parameter_patches import raw
from adapters.patches import invalid, is_neutral
from adapters.types import Action, Adjustment, Body

FUNCTIONS: Final = "functions"
FUNCTION_CALL: Final = "function_call"
IN_OLD_WORDS: Final = {"tools": FUNCTIONS, "tool_choice": FUNCTION_CALL}
"""What a parameter was called."""
_decode = msgspec.json.Decoder().decode


def as_tools(body: Body) -> tuple[Body, tuple[Adjustment, ...]]:
    """*body* with its functions as tools, past calls included, and what was changed; *body* itself stays as it is.

    BAD_REQUEST for what is no list of functions, and for tools beside them.
    """
    made = {name: value for name, value in body.items() if name not in (FUNCTIONS, FUNCTION_CALL)}
    choice = _decode(body[FUNCTION_CALL]) if FUNCTION_CALL in body else None
    if is_neutral("tools", body[FUNCTIONS]):
        if choice not in (None, "none", "auto"):
            raise invalid(FUNCTION_CALL, "'function_call' needs 'functions' to choose from.")
        return made, ()
    if any(name in body and not is_neutral(name, body[name]) for name in IN_OLD_WORDS):
        raise invalid(FUNCTIONS, "'functions' and 'tools' cannot stand together; 'tools' can do all that they can.")
    made["tools"] = raw([{"type": "function", "function": function} for function in _functions(body[FUNCTIONS])])
    changes = [Adjustment(FUNCTIONS, Action.MAPPED)]
    if choice is not None:
        made["tool_choice"] = raw(_choice(choice))
        changes.append(Adjustment(FUNCTION_CALL, Action.MAPPED))
    if b'"function' in bytes(made.get("messages", b"")):
        made["messages"] = raw(_past(_decode(made["messages"])))
    return made, tuple(changes)


def _functions(value: msgspec.Raw) -> list[Any]:
    functions = _decode(value)
    if not isinstance(functions, list) or not all(
        isinstance(function, dict) and isinstance(function.get("name"), str) for function in functions
    ):
        raise invalid(FUNCTIONS, "'functions' has to be a list of functions, each with its name.")
    return functions


def _choice(choice: Any) -> Any:
    if isinstance(choice, dict) and isinstance(choice.get("name"), str):
        return {"type": "function", "function": {"name": choice["name"]}}
    if choice in ("none", "auto"):
        return choice
    raise invalid(FUNCTION_CALL, "'function_call' has to be 'none', 'auto' or an object with the name of a function.")


def _past(messages: Any) -> Any:
    """*messages* with the calls of functions, and what came of them, as those of tools."""
    if not isinstance(messages, list):
        return messages
    told: list[Any] = []
    last = ""
    for number, message in enumerate(messages):
        if isinstance(message, dict) and FUNCTION_CALL in message:
            message = dict(message)
            call = message.pop(FUNCTION_CALL)
            if isinstance(call, dict) and not message.get("tool_calls"):
                last = f"call_{number:05d}"
                message["tool_calls"] = [{"id": last, "type": "function", "function": call}]
        elif isinstance(message, dict) and message.get("role") == "function" and last:
            kept = {name: value for name, value in message.items() if name != "name"}
            message = {**kept, "role": "tool", "tool_call_id": last}
        told.append(message)
    return told


def old_style(calls: Any) -> dict[str, Any] | None:
    """The ``function_call`` that the first of the tool *calls* of a message or delta is; None where there is none."""
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict) and call.get("index", 0) == 0:
            return {name: function[name] for name in ("name", "arguments") if name in function}
    return None
