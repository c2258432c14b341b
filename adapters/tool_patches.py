"""Patches for the tools of a request: whether it has any, how many, and what is said of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from adapters.draft import Draft
from adapters.errors import ProviderError
from adapters.parameter_patches import raw
from adapters.patches import invalid, is_neutral, leave_out, unsupported
from adapters.schema_dialect import with_defs
from adapters.types import Action, FailureKind

_decode = msgspec.json.Decoder().decode

ABOUT_TOOLS: Final = ("tools", "tool_choice", "parallel_tool_calls")
"""What says something about tools; nothing of it means anything without them."""
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
    for name in ABOUT_TOOLS:
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
        for name in ABOUT_TOOLS:
            draft.body.pop(name, None)
        return
    leave_out(draft, param, provider, reason)
    if draft.needs is not None:
        draft.needs.call = None  # nor can one be missing
    tidy = [name for name in ABOUT_TOOLS if name in draft.body]
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
