"""Tools on targets that have none, or none that can be forced: asked for as JSON of a schema, wrapped as calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from adapters.draft import Draft
from adapters.errors import ProviderError
from adapters.patches import unsupported
from adapters.shapes.base import Answer, Caller, Continue, Outcome
from adapters.shapes.bodies import is_used, may_emulate, value_of, without
from adapters.shapes.conditions import Predicate
from adapters.shapes.tool_request import ABOUT_TOOLS, least_called_first, read_tool_request, unforced
from adapters.shapes.usage import sum_of_calls
from adapters.tool_choice import forced_word
from adapters.types import Action, Body, FailureKind, Operation


@dataclass(frozen=True, slots=True)
class EmulateTools:
    """All of ``tools`` for a model whose template has none."""

    provider: str
    offers: Callable[[str], bool | None] | None = None
    """Tells of a model whether its template has tools after all; None: it has not."""

    param: ClassVar[str] = "tools"
    action: ClassVar[Action] = Action.EMULATED
    lossy: ClassVar[bool] = True
    triggers: ClassVar[frozenset[str]] = frozenset(("tools",))

    def applies(self, draft: Draft) -> bool:
        body = draft.body
        if draft.operation is not Operation.CHAT or not is_used(body, "tools"):
            return False
        if not lacks_tools(self.provider, self.offers):
            return False
        return may_emulate(draft, self.param, self.provider) and _checked(body, self.provider)

    def first(self, body: Body) -> Body:
        request = read_tool_request(body)
        return request.asked(body) if request is not None else without(body, *ABOUT_TOOLS)

    async def answer(self, body: Body, caller: Caller) -> Outcome:
        request = read_tool_request(body)
        if request is None:
            return Continue(self.first(body))
        return await request.answer(self.first(body), caller)


@dataclass(frozen=True, slots=True)
class EmulateForcedTool:
    """A forced ``tool_choice`` for a target that has tools but cannot be made to call one.

    The model is asked freely first, with the tools it may call: nearly always it calls the one that makes sense. Only
    one that does not is bound by a schema, which leaves it no way but to call.
    """

    provider: str
    required: bool
    """``required`` does not work there."""
    named: bool
    """Naming a function does not work there."""
    conflicts: tuple[Predicate, ...] = ()
    """Combinations in which neither does."""

    param: ClassVar[str] = "tool_choice"
    action: ClassVar[Action] = Action.EMULATED
    lossy: ClassVar[bool] = True
    triggers: ClassVar[frozenset[str]] = frozenset(("tool_choice",))

    def applies(self, draft: Draft) -> bool:
        body = draft.body
        if draft.operation is not Operation.CHAT or not is_used(body, "tools"):
            return False
        word = forced_word(value_of(body, "tool_choice"))
        lacking = (word == "named" and self.named) or (word == "required" and self.required)
        if not word or not (lacking or any(conflict(draft) for conflict in self.conflicts)):
            return False
        return may_emulate(draft, self.param, self.provider) and _checked(body, self.provider)

    def first(self, body: Body) -> Body:
        request = read_tool_request(body)
        return unforced(body) if request is not None else body

    async def answer(self, body: Body, caller: Caller) -> Outcome:
        if read_tool_request(body) is None:
            return Continue(body)
        free = await caller.whole(unforced(body))
        if _has_call(free):
            return free
        body = least_called_first(body)
        request = read_tool_request(body)
        assert request is not None
        bound = await request.answer(request.asked(body), caller)
        usage = sum_of_calls(free.get("usage"), bound.get("usage"))
        return bound if usage is None else {**bound, "usage": usage}


def _has_call(answer: Answer) -> bool:
    return any((choice.get("message") or {}).get("tool_calls") for choice in answer["choices"])


def lacks_tools(provider: str, offers: Callable[[str], bool | None] | None) -> bool:
    """Whether the model's template has no tools, which *offers* tells; ENGINE_DOWN where that is not known yet."""
    offered = offers("tools") if offers is not None else False
    if offered is None:
        message = (
            f"{provider} has not been ready yet, and tells only then whether its model takes 'tools'. "
            "Try again in a moment."
        )
        raise ProviderError(FailureKind.ENGINE_DOWN, message, param="tools", sent=False)
    return not offered


def _checked(body: Body, provider: str) -> bool:
    """True for tools that can be emulated; raises for what cannot be honoured beside them."""
    read_tool_request(body)
    for name in ("logprobs", "top_logprobs"):
        if is_used(body, name):
            raise unsupported(name, provider, "Tools are emulated there, so the tokens are not those of the answer.")
    return True
