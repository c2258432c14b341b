"""Patches for tools and how they may be called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from adapters.draft import Draft
from adapters.errors import ProviderError
from adapters.parameter_patches import raw
from adapters.patches import invalid, is_neutral, leave_out, unsupported
from adapters.types import Action, FailureKind, Operation

_decode = msgspec.json.Decoder().decode

_ABOUT_TOOLS: Final = ("tools", "tool_choice", "parallel_tool_calls")
_SMALLEST_TOOL: Final = len(b'{"type":"function","function":{"name":"a"}}')


def has_tools(draft: Draft) -> bool:
    """Whether there is a tool to call."""
    tools = draft.body.get("tools")
    return tools is not None and not is_neutral("tools", tools)


def tidy_tools(draft: Draft) -> None:
    """Leave out a list without tools, and what says how to call them where there are none.

    A demand for a call without a tool is BAD_REQUEST, as at OpenAI.
    """
    body = draft.body
    if has_tools(draft):
        return
    for name in _ABOUT_TOOLS:
        value = body.pop(name, None)
        if name == "tool_choice" and value is not None and not is_neutral(name, value):
            raise invalid(name, "'tool_choice' needs 'tools' to choose from.")


@dataclass(frozen=True, slots=True)
class OrderlyTools:
    """`tidy_tools`, once a request, by whichever of the parameters comes first."""

    def __call__(self, draft: Draft) -> None:
        tidy_tools(draft)


@dataclass(frozen=True, slots=True)
class ToolsIfOffered:
    """Refuse ``tools`` unless the target's model can call them, which *offers* tells once it has been started."""

    provider: str
    offers: Callable[[str], bool | None]
    hint: str = ""

    def __call__(self, draft: Draft) -> None:
        offered = self.offers("tools")
        if offered:
            return
        if offered is None:
            message = (
                f"{self.provider} has not been ready yet, and tells only then whether its model takes 'tools'. "
                "Try again in a moment."
            )
            raise ProviderError(FailureKind.ENGINE_DOWN, message, param="tools", sent=False)
        leave_out_tools(draft, "tools", self.provider, self.hint)


def leave_out_tools(draft: Draft, param: str, provider: str, reason: str) -> None:
    """`leave_out` for ``tools``, with all that is said about them; a request that calls none needs none."""
    choice = draft.body.get("tool_choice")
    if choice is not None and bytes(choice) == b'"none"':
        for name in _ABOUT_TOOLS:
            draft.body.pop(name, None)
        return
    leave_out(draft, param, provider, reason)
    if draft.needs is not None:
        draft.needs.call = None  # nor can one be missing
    tidy = [name for name in _ABOUT_TOOLS if name in draft.body]
    for name in tidy:
        del draft.body[name]


@dataclass(frozen=True, slots=True)
class NoTools:
    """Leave out or refuse the tools of a target that has none."""

    provider: str
    hint: str = ""

    def __call__(self, draft: Draft) -> None:
        leave_out_tools(draft, "tools", self.provider, self.hint)


@dataclass(frozen=True, slots=True)
class FewerTools:
    """Refuse more than *most* tools."""

    provider: str
    most: int

    def __call__(self, draft: Draft) -> None:
        given = bytes(draft.body["tools"])
        # Counting means decoding; so many do not fit in a short text.
        if len(given) > self.most * _SMALLEST_TOOL and len(_decode(given)) > self.most:
            raise unsupported("tools", self.provider, f"It takes at most {self.most} of them.")


@dataclass(frozen=True, slots=True)
class CleanTools:
    """Send tools without what the target does not know: only *keep* of a function, schemas with ``$defs``.

    ``strict`` is left out where *keep* lacks it: the model is then not bound to the schema, but is told it. With
    *strict_alike* it is left out as well where only some of the tools have it. With *fill_parameters* a function that
    takes none says so.
    """

    keep: frozenset[str]
    inline_definitions: bool = False
    strict_alike: bool = False
    fill_parameters: bool = False

    def __call__(self, draft: Draft) -> None:
        tools = _decode(draft.body["tools"])
        if not isinstance(tools, list):
            return
        cleaned = [self._clean(tool, draft) for tool in tools]
        if self.strict_alike:
            cleaned = _strict_alike(cleaned)
        if cleaned != tools:
            draft.body["tools"] = raw(cleaned)
            draft.adjusted("tools", Action.REWRITTEN)

    def _clean(self, tool: Any, draft: Draft) -> Any:
        function = tool.get("function") if isinstance(tool, dict) else None
        if not isinstance(function, dict):
            return tool
        kept = {name: value for name, value in function.items() if name in self.keep and value is not None}
        if self.fill_parameters:
            kept.setdefault("parameters", {"type": "object", "properties": {}})
        if self.inline_definitions and isinstance(kept.get("parameters"), dict):
            kept["parameters"] = with_defs(kept["parameters"])
        return {"type": tool.get("type", "function"), "function": kept}


def _strict_alike(tools: list[Any]) -> list[Any]:
    """*tools* without ``strict`` where it is not said of all of them."""
    functions = [
        tool["function"] for tool in tools if isinstance(tool, dict) and isinstance(tool.get("function"), dict)
    ]
    if len({function.get("strict") is True for function in functions}) > 1:
        for function in functions:
            function.pop("strict", None)
    return tools


FUNCTION_MEMBERS: Final = frozenset(("name", "description", "parameters", "strict"))
"""What OpenAI's tools say of a function."""


def with_defs(schema: Any) -> Any:
    """A copy of *schema* whose ``definitions`` are called ``$defs``, references included."""
    if isinstance(schema, dict):
        copied: dict[str, Any] = {}
        for name, value in schema.items():
            if name == "$ref" and isinstance(value, str):
                copied[name] = value.replace("#/definitions/", "#/$defs/")
            elif name == "definitions" and isinstance(value, dict):
                copied["$defs"] = {**with_defs(value), **copied.get("$defs", {})}
            elif name == "properties" and isinstance(value, dict):
                # Names of the client's own: one may well be called "definitions".
                copied[name] = {key: with_defs(inner) for key, inner in value.items()}
            else:
                copied[name] = with_defs(value)
        return copied
    if isinstance(schema, list):
        return [with_defs(item) for item in schema]
    return schema


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
            for member in _ABOUT_TOOLS:
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
    return function.get("name") if isinstance(function, dict) else None


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
