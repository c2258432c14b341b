"""Tools on targets that have none, or none that can be forced: asked for as JSON of a schema, wrapped as calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from adapters.draft import Draft
from adapters.errors import ProviderError
from adapters.patches import unsupported
from adapters.shapes.base import Answer, Caller, Continue, Outcome
from adapters.shapes.bodies import changed, is_used, may_emulate, value_of, with_instruction, without
from adapters.shapes.conditions import Predicate
from adapters.shapes.json_answer import JsonFormat, conforming, is_judged, text_of
from adapters.shapes.tool_prompt import instruction
from adapters.shapes.tool_schema import CallFormat, Tool, choose, forced_word, read_tools
from adapters.types import Action, Body, FailureKind, Operation

_TOOLS: Final = ("tools", "tool_choice", "parallel_tool_calls")
# They would act on the JSON that stands for the answer, not on the answer.
_OF_THE_TEXT: Final = ("stop", "logprobs", "top_logprobs", "response_format")


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
        request = _Request.of(body)
        return request.asked(body) if request is not None else without(body, *_TOOLS)

    async def answer(self, body: Body, caller: Caller) -> Outcome:
        request = _Request.of(body)
        if request is None:
            return Continue(self.first(body))
        return await request.answer(self.first(body), caller)


@dataclass(frozen=True, slots=True)
class EmulateForcedTool:
    """A forced ``tool_choice`` for a target that has tools but cannot be made to call one."""

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
        request = _Request.of(body)
        return request.asked(body) if request is not None else body

    async def answer(self, body: Body, caller: Caller) -> Outcome:
        request = _Request.of(body)
        if request is None:
            return Continue(body)
        return await request.answer(request.asked(body), caller)


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
    _Request.of(body)
    for name in ("logprobs", "top_logprobs"):
        if is_used(body, name):
            raise unsupported(name, provider, "Tools are emulated there, so the tokens are not those of the answer.")
    return True


@dataclass(frozen=True, slots=True)
class _Request:
    """The tools of one request, as they are asked for by a schema."""

    format: CallFormat
    tools: tuple[Tool, ...]
    may_speak: bool
    sole: bool
    stops: tuple[str, ...]

    @classmethod
    def of(cls, body: Body) -> _Request | None:
        """The request for calls in *body*; None where no call may be made. BAD_REQUEST for tools that are none."""
        if not is_used(body, "tools"):
            return None
        mode, tools = choose(read_tools(value_of(body, "tools")), value_of(body, "tool_choice"))
        if mode == "none" or not tools:
            return None
        named = isinstance(value_of(body, "tool_choice"), dict) and len(tools) == 1 and mode == "required"
        parallel = value_of(body, "parallel_tool_calls") is not False and not named
        may_speak = mode == "auto"
        sole = len(tools) == 1 and not may_speak and not parallel
        stop = value_of(body, "stop")
        stops = (stop,) if isinstance(stop, str) else tuple(stop or ())
        return cls(CallFormat(tools, may_speak=may_speak, parallel=parallel), tuple(tools), may_speak, sole, stops)

    def asked(self, body: Body) -> Body:
        """*body* with the tools in words, and the schema as the format of the answer."""
        told = instruction(self.tools, may_speak=self.may_speak, sole=self.sole)
        wrapped = {"name": "answer", "schema": self.format.schema}
        return changed(
            without(body, *_TOOLS, *_OF_THE_TEXT),
            messages=with_instruction(value_of(body, "messages"), told),
            response_format={"type": "json_schema", "json_schema": wrapped},
        )

    async def answer(self, asked: Body, caller: Caller) -> Answer:
        """The answer to *asked*, with calls in place of the JSON."""
        answer = await conforming(asked, JsonFormat(self.format.schema, "tools"), caller, param="tools")
        for choice in answer["choices"]:
            self._turn(choice)
        return answer

    def _turn(self, choice: dict[str, Any]) -> None:
        message = choice["message"]
        if choice.get("finish_reason") == "length":
            text, calls = self.format.read_cut(text_of(choice))
        elif is_judged(choice):
            text, calls = self.format.read(text_of(choice))
        else:
            return  # refused, or filtered: there is nothing to read
        message["content"] = _cut(text, self.stops) if text is not None else None
        choice["logprobs"] = None
        if calls:
            message["tool_calls"] = calls
            if choice.get("finish_reason") != "length":
                choice["finish_reason"] = "tool_calls"


def _cut(text: str, stops: tuple[str, ...]) -> str:
    """*text* up to the first of *stops*."""
    ends = [at for stop in stops if stop and (at := text.find(stop)) >= 0]
    return text[: min(ends)] if ends else text
