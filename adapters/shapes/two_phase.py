"""Tools and a response format for a target that takes only one of them: first the tools, then the format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from adapters.draft import Draft
from adapters.shapes.base import Answer, Caller, Continue, Outcome, Shape
from adapters.shapes.bodies import is_used, value_of, without
from adapters.shapes.conditions import Predicate
from adapters.shapes.json_answer import read_format
from adapters.tool_choice import forced_word
from adapters.types import Action, Body, Operation

_TOOLS = ("tools", "tool_choice", "parallel_tool_calls")


@dataclass(frozen=True, slots=True)
class TwoPhase:
    """A tool turn without the format; when it ends without a call, the format without the tools.

    What calls a tool is passed on as it is: OpenAI binds only the text of an answer to the format.
    """

    conflicts: tuple[Predicate, ...] = ()
    """The combinations that the target refuses."""
    emulated: tuple[Shape, ...] = ()
    """Emulate tools by a format of their own, so that no other can stand beside it."""
    param: str = "response_format"
    """What holds the format."""

    action: ClassVar[Action] = Action.SPLIT
    lossy: ClassVar[bool] = False

    @property
    def triggers(self) -> frozenset[str]:
        return frozenset((self.param,))

    def applies(self, draft: Draft) -> bool:
        if (
            draft.operation is not Operation.CHAT
            or not is_used(draft.body, "tools")
            or not is_used(draft.body, self.param)
        ):
            return False
        if any(conflict(draft) for conflict in self.conflicts):
            return True
        return any(not shape.triggers.isdisjoint(draft.body) and shape.applies(draft) for shape in self.emulated)

    def first(self, body: Body) -> Body:
        return without(body, *_TOOLS) if _choice(body) == "none" else without(body, self.param)

    async def answer(self, body: Body, caller: Caller) -> Outcome:
        if _choice(body) != "auto":
            return Continue(self.first(body))  # there will be no call, or nothing but calls
        wanted = read_format(body)
        answer = await caller.whole(self.first(body))
        if _calls(answer) or (wanted is not None and wanted.conforms(answer)):
            return answer
        return Continue(without(body, *_TOOLS), answer.get("usage"))


def _choice(body: Body) -> str:
    """``none``, ``auto``, or ``forced`` where a call has to come."""
    choice = value_of(body, "tool_choice")
    if forced_word(choice):
        return "forced"
    return "none" if choice == "none" else "auto"


def _calls(answer: Answer) -> bool:
    return any((choice.get("message") or {}).get("tool_calls") for choice in answer["choices"])
