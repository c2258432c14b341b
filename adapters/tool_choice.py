"""Patches for how tools may be called: by choice, by name, one at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from adapters.draft import Draft
from adapters.parameter_patches import raw
from adapters.patches import invalid, leave_out
from adapters.tool_patches import ABOUT_TOOLS
from adapters.types import Action, Operation

_decode = msgspec.json.Decoder().decode


def forced_word(choice: Any) -> str:
    """``required`` or ``named`` where ``tool_choice`` leaves the model no way but to call, else nothing."""
    if isinstance(choice, dict):
        if choice.get("type") != "allowed_tools":
            return "named"
        allowed = choice.get("allowed_tools")
        return "required" if isinstance(allowed, dict) and allowed.get("mode") == "required" else ""
    return "required" if choice in ("required", "any") else ""


def named_function(choice: Any) -> str | None:
    """The function that *choice* names, in the form of chat completions or of responses."""
    if not isinstance(choice, dict) or choice.get("type") not in (None, "function"):
        return None
    function = choice.get("function")
    name = function.get("name") if isinstance(function, dict) else choice.get("name")
    return name if isinstance(name, str) else None


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """Say how tools may be called with the words the target has.

    *words* are those it takes, ``named`` among them. With *require_named* a named tool becomes the only one of the
    list, with ``required``. A list of allowed tools becomes the list of tools. What cannot be said is left out or
    refused.
    """

    provider: str
    words: Sequence[str]
    require_named: bool = False
    hint: str = ""

    def __call__(self, draft: Draft) -> None:
        body = draft.body
        choice = _decode(body["tool_choice"])
        if choice is None:
            del body["tool_choice"]
            return
        if isinstance(choice, dict) and choice.get("type") == "allowed_tools":
            choice = self._narrow(draft, choice)
        if choice == "any" and "any" not in self.words:
            choice = "required"
            self._say(draft, choice, Action.MAPPED)
        name = named_function(choice)
        word = "named" if name is not None else choice
        if word in self.words:
            return
        if word == "none":
            for member in ABOUT_TOOLS:
                body.pop(member, None)
        elif word == "named" and self.require_named:
            self._require(draft, name)
        elif word == "auto":
            del body["tool_choice"]
        else:
            leave_out(draft, "tool_choice", self.provider, self.hint or self._told())

    def _told(self) -> str:
        return f"It takes: {', '.join(self.words)}." if self.words else ""

    def _require(self, draft: Draft, name: str | None) -> None:
        tools = _decode(draft.body["tools"])
        only = [tool for tool in tools if _name_of(tool) == name]
        if not only:
            raise invalid("tool_choice", f"'tool_choice' names {str(name)[:40]!r}, which is not among the tools.")
        draft.body["tools"] = raw(only)
        self._say(draft, "required", Action.EMULATED)

    def _narrow(self, draft: Draft, choice: dict[str, Any]) -> Any:
        allowed = choice.get("allowed_tools", choice)
        names = {named_function(tool) for tool in allowed.get("tools", ())}
        tools = [tool for tool in _decode(draft.body["tools"]) if _name_of(tool) in names]
        if not tools:
            raise invalid("tool_choice", "'tool_choice' allows none of the tools.")
        draft.body["tools"] = raw(tools)
        mode = allowed.get("mode", "auto")
        self._say(draft, mode, Action.EMULATED)
        return mode

    def _say(self, draft: Draft, word: str, action: Action) -> None:
        draft.body["tool_choice"] = raw(word)
        draft.adjusted("tool_choice", action)


def _name_of(tool: Any) -> str | None:
    function = tool.get("function") if isinstance(tool, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    return name if isinstance(name, str) else None


@dataclass(frozen=True, slots=True)
class CallDue:
    """Look for the call that the target was told to make: some answer without one all the same.

    A stream is passed on as it comes, so it is not looked at.
    """

    def __call__(self, draft: Draft) -> None:
        if draft.stream or draft.operation is not Operation.CHAT:
            return
        choice = _decode(draft.body["tool_choice"])
        if forced_word(choice):
            draft.answer_needs().call = named_function(choice) or ""


@dataclass(frozen=True, slots=True)
class OneCall:
    """Keep only the first call of the answer, where the target makes several whatever it is told."""

    def __call__(self, draft: Draft) -> None:
        value = bytes(draft.body.pop("parallel_tool_calls"))
        if value == b"false":
            draft.answer_needs().one_call = True
            draft.adjusted("parallel_tool_calls", Action.EMULATED)
