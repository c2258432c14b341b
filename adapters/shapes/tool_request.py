"""The tools of one request, as they are asked for by a schema, and the answer that has calls in place of the JSON."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import msgspec

from adapters.messages import read_unique
from adapters.shapes.base import Answer, Caller
from adapters.shapes.bodies import changed, is_used, value_of, with_instruction, without
from adapters.shapes.json_answer import JsonFormat, conforming, is_judged, text_of
from adapters.shapes.tool_prompt import instruction
from adapters.shapes.tool_schema import CallFormat, choose, read_tools
from adapters.types import Body

ABOUT_TOOLS: Final = ("tools", "tool_choice", "parallel_tool_calls")
# They would act on the JSON that stands for the answer, not on the answer.
_OF_THE_TEXT: Final = ("stop", "logprobs", "top_logprobs", "response_format")
_READ: Final = (*ABOUT_TOOLS, "stop")
_NOTHING: Final = msgspec.Raw(b"null")
# Agents send the same tools turn by turn, and each request is read several times; large ones are not worth keeping.
_REMEMBERED: Final = 64
_MOST_BYTES: Final = 65_536


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """What the model is asked for, and how its answer is read. Holds nothing of a conversation."""

    format: CallFormat
    wanted: JsonFormat
    told: str
    """The tools in words."""
    response_format: msgspec.Raw
    stops: tuple[str, ...]

    def asked(self, body: Body) -> Body:
        """*body* with the tools in words, and the schema as the format of the answer."""
        messages = with_instruction(value_of(body, "messages"), self.told)
        asked = changed(without(body, *ABOUT_TOOLS, *_OF_THE_TEXT), messages=messages)
        return {**asked, "response_format": self.response_format}

    async def answer(self, asked: Body, caller: Caller) -> Answer:
        """The answer to *asked*, with calls in place of the JSON."""
        answer = await conforming(asked, self.wanted, caller, param="tools")
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


def read_tool_request(body: Body) -> ToolRequest | None:
    """The request for calls in *body*; None where no call may be made. BAD_REQUEST for tools that are none."""
    if not is_used(body, "tools"):
        return None
    given = tuple(bytes(body.get(name, _NOTHING)) for name in _READ)
    if sum(map(len, given)) > _MOST_BYTES:
        return _read.__wrapped__(*given)
    return _read(*given)


def unforced(body: Body) -> Body:
    """*body* with only the tools that may be called, and the model free to call one or not."""
    tools = value_of(body, "tools")
    _, chosen = choose(read_tools(tools), value_of(body, "tool_choice"))
    names = {tool.name for tool in chosen}
    kept = tools if len(names) == len(tools) else [tool for tool in tools if tool["function"]["name"] in names]
    return changed(without(body, "tool_choice"), tools=kept)


def least_called_first(body: Body) -> Body:
    """*body* with the tools that have not been called yet before the others, and the last called at the end.

    A model that has to call something tends to take the first, and an agent would see the same call turn by turn.
    """
    last: dict[str, int] = {}
    for number, message in enumerate(value_of(body, "messages")):
        for call in message.get("tool_calls") or () if isinstance(message, dict) else ():
            function = call.get("function") if isinstance(call, dict) else None
            if isinstance(function, dict):
                last[str(function.get("name"))] = number
    if not last:
        return body
    tools = value_of(body, "tools")
    return changed(body, tools=sorted(tools, key=lambda tool: last.get(tool["function"]["name"], -1)))


@lru_cache(maxsize=_REMEMBERED)
def _read(tools_given: bytes, choice_given: bytes, parallel_given: bytes, stop_given: bytes) -> ToolRequest | None:
    choice, stop = read_unique(msgspec.Raw(choice_given), "tool_choice"), msgspec.json.decode(stop_given)
    mode, tools = choose(read_tools(read_unique(msgspec.Raw(tools_given), "tools")), choice)
    if mode == "none" or not tools:
        return None
    may_speak = mode == "auto"
    named = isinstance(choice, dict) and len(tools) == 1 and not may_speak
    parallel = parallel_given != b"false" and not named
    form = CallFormat(tools, may_speak=may_speak, parallel=parallel)
    told = instruction(tools, may_speak=may_speak, sole=form.sole)
    asked = {"type": "json_schema", "json_schema": {"name": "answer", "schema": form.schema}}
    stops = (stop,) if isinstance(stop, str) else tuple(stop or ())
    return ToolRequest(form, JsonFormat(form.schema, "tools"), told, msgspec.Raw(msgspec.json.encode(asked)), stops)


def _cut(text: str, stops: tuple[str, ...]) -> str:
    """*text* up to the first of *stops*."""
    ends = [at for stop in stops if stop and (at := text.find(stop)) >= 0]
    return text[: min(ends)] if ends else text
