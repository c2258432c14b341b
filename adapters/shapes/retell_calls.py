"""Calls in the history of a conversation, for models whose template cannot render them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Final

from adapters.draft import Draft
from adapters.shapes.base import Caller, Continue, Outcome
from adapters.shapes.bodies import changed, value_of
from adapters.shapes.emulate_tools import lacks_tools
from adapters.shapes.tool_prompt import retold
from adapters.types import Action, Body, Operation

# What only stands in messages that call tools or tell what came of it.
_MARKS: Final = (b'"tool_calls"', b'"tool_call_id"', b'"function_call"')


@dataclass(frozen=True, slots=True)
class RetellCalls:
    """Past calls and their results in words, with tools in the request or without."""

    provider: str
    offers: Callable[[str], bool | None] | None = None
    """Tells of a model whether its template has tools after all; None: it has not."""

    param: ClassVar[str] = "messages"
    action: ClassVar[Action] = Action.REWRITTEN
    lossy: ClassVar[bool] = False
    triggers: ClassVar[frozenset[str]] = frozenset(("messages",))

    def applies(self, draft: Draft) -> bool:
        if draft.operation is not Operation.CHAT:
            return False
        messages = bytes(draft.body["messages"])
        return any(mark in messages for mark in _MARKS) and lacks_tools(self.provider, self.offers)

    def first(self, body: Body) -> Body:
        return changed(body, messages=retold(value_of(body, "messages")))

    async def answer(self, body: Body, caller: Caller) -> Outcome:
        return Continue(self.first(body))
