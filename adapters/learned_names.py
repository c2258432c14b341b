"""What becomes of a target's refusal of how a tool is named: its tools get names that are taken everywhere."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from adapters.draft import Draft, Unsupported
from adapters.parameter_patches import raw
from adapters.told import Told
from adapters.tool_names import plain_name
from adapters.types import Action, Operation

_decode = msgspec.json.Decoder().decode
_ABOUT_NAMES: Final = re.compile(
    r"\b(?:tools?|tool_calls|functions?|function_declarations)\b\S*\.name\b|\b(?:function|tool)(?:'s)? names?\b"
)
_ODDLY: Final = re.compile(
    r"\bpattern\b|\ba-z\b|alphanumeric|alphameric|\bletters\b|\bcharacters\b|too long|max(?:imum)?[ _]length"
    r"|must start with|invalid (?:function|tool) name"
)
_MAY_HOLD_NAMES: Final = (b'"tool_calls"', b'"function_call"', b'"name"')


def names_refused(told: Told) -> bool:
    """Whether a refusal says that tools may not be named as they are."""
    return bool(_ABOUT_NAMES.search(told.text) and _ODDLY.search(told.text))


@dataclass(frozen=True, slots=True)
class PlainToolNames:
    """Send tools by their plain names, in the choice among them and in past calls as well.

    The client gets its own names back with the answer (`repair.asked`).
    """

    def __call__(self, draft: Draft) -> None:
        if draft.operation is not Operation.CHAT or draft.unsupported is Unsupported.REJECT:
            return
        tools = _decode(draft.body["tools"])
        if not isinstance(tools, list):
            return
        named = [_with_plain_function(tool) for tool in tools]
        if named != tools:
            draft.body["tools"] = raw(named)
            draft.adjusted("tools", Action.RENAMED)
            draft.answer_needs()  # an answer that holds a call has to be looked at, however usual it is
        self._choice(draft)
        self._past(draft)

    @staticmethod
    def _choice(draft: Draft) -> None:
        choice = _decode(draft.body["tool_choice"]) if "tool_choice" in draft.body else None
        if not isinstance(choice, dict):
            return
        named = _with_plain_function(choice)
        allowed = choice.get("allowed_tools")
        if isinstance(allowed, dict) and isinstance(allowed.get("tools"), list):
            named["allowed_tools"] = {**allowed, "tools": [_with_plain_function(tool) for tool in allowed["tools"]]}
        if named != choice:
            draft.body["tool_choice"] = raw(named)

    @staticmethod
    def _past(draft: Draft) -> None:
        given = bytes(draft.body["messages"])
        if not any(member in given for member in _MAY_HOLD_NAMES):
            return
        messages = _decode(given)
        named = [_with_plain_calls(one) for one in messages] if isinstance(messages, list) else messages
        if named != messages:
            draft.body["messages"] = raw(named)
            draft.adjusted("messages", Action.REWRITTEN)


def _with_plain_calls(message: Any) -> Any:
    """*message* with the plain names of the tools that it calls, or is the result of."""
    if not isinstance(message, dict):
        return message
    named = dict(message)
    if isinstance(message.get("tool_calls"), list):
        named["tool_calls"] = [_with_plain_function(call) for call in message["tool_calls"]]
    if isinstance(message.get("function_call"), dict):
        named["function_call"] = _with_plain_name(message["function_call"])
    return _with_plain_name(named) if message.get("role") in ("tool", "function") else named


def _with_plain_function(holder: Any) -> Any:
    """A copy of a tool, a call or a choice with the plain name of its function."""
    if not isinstance(holder, dict) or not isinstance(holder.get("function"), dict):
        return dict(holder) if isinstance(holder, dict) else holder
    return {**holder, "function": _with_plain_name(holder["function"])}


def _with_plain_name(named: dict[str, Any]) -> dict[str, Any]:
    name = named.get("name")
    return {**named, "name": plain_name(name)} if isinstance(name, str) and name else named
