"""A tool call that the provider refused to pass on: read out of what the model wrote, or else asked for again."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from adapters.draft import Draft
from adapters.errors import ProviderError
from adapters.repair.arguments import written_calls
from adapters.shapes.again import TOOLS, AskAgain
from adapters.shapes.base import Answer, Caller, Continue, Outcome, Shape
from adapters.shapes.bodies import is_used, value_of
from adapters.shapes.json_answer import json_in
from adapters.shapes.json_schema import Schema
from adapters.shapes.tool_schema import made_call, read_tools
from adapters.spec import ErrorCaseSpec
from adapters.types import Action, Body, Operation

_LONGEST: Final = 65_536
# How Llama and Qwen write calls when they do not write plain JSON: <function=name>{…}</function>,
# <function=name{…}</function>, <function=name={…}</function>, <tool_call>{…}</tool_call>.
_TAGGED: Final = re.compile(r"<function=([A-Za-z0-9_.-]+)[=>,\s]*(\{.*?\})\s*(?:>?</function>|$)", re.DOTALL)
_WRAPPED: Final = re.compile(r"<(tool_call|tool-use|tool_use|function_call)>\s*(.*?)\s*(?:</\1>|$)", re.DOTALL)


class SalvageCall:
    """Rescues requests with tools that ended in one of *cases*."""

    def __init__(self, cases: Sequence[ErrorCaseSpec]) -> None:
        self._cases = tuple(cases)

    def rescued(self, draft: Draft, failure: ProviderError) -> Shape | None:
        if draft.operation is not Operation.CHAT or not is_used(draft.body, "tools"):
            return None
        known = any(
            failure.status in case.status and (case.code is None or case.code == failure.code) for case in self._cases
        )
        if not known:
            return None
        return _Salvaged("tools", Action.EMULATED, triggers=TOOLS, generation=failure.failed_generation)

    def worked(self) -> None:
        """Nothing to remember: the next request is answered by another throw of the dice."""


@dataclass(frozen=True, slots=True, eq=False)
class _Salvaged(AskAgain):
    """The calls that the model wrote; the same request once more where there are none."""

    generation: str | None = None

    async def answer(self, body: Body, caller: Caller) -> Outcome:
        calls = _calls_in(self.generation or "", body)
        return _answer(calls) if calls else Continue(body)


def _calls_in(text: str, body: Body) -> list[dict[str, Any]]:
    """The calls in *text*, if they are of the tools of *body* and their arguments are what these take."""
    tools = {tool.name: tool for tool in read_tools(value_of(body, "tools"))}
    names = frozenset(tools)
    found: list[dict[str, Any]] = []
    for candidate in _candidates(text[:_LONGEST]):
        found = written_calls(candidate, names) or []
        if found:
            break
    made: list[dict[str, Any]] = []
    for call in found:
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        try:
            value = msgspec.json.decode(arguments)
        except msgspec.DecodeError:
            return []
        if Schema(tools[name].parameters, "tools").problems(value):
            return []
        made.append(made_call(name, arguments))
    return made[:1] if value_of(body, "parallel_tool_calls") is False else made


def _candidates(text: str) -> Iterator[str]:
    """What of *text* may be the JSON of one call or several."""
    yield json_in(text)
    for match in _WRAPPED.finditer(text):
        yield json_in(match[2])
    tagged = [
        f'{{"name":{msgspec.json.encode(name).decode()},"arguments":{arguments}}}'
        for name, arguments in _TAGGED.findall(text)
    ]
    if tagged:
        yield f"[{','.join(tagged)}]"
    try:
        value = msgspec.json.decode(json_in(text))
    except msgspec.DecodeError:
        return
    if isinstance(value, dict) and isinstance(value.get("tool_calls"), list):
        yield msgspec.json.encode(value["tool_calls"]).decode()


def _answer(calls: list[dict[str, Any]]) -> Answer:
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    return {
        "id": f"chatcmpl-{secrets.token_hex(12)}",
        "object": "chat.completion",
        "created": int(time.time()),
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "tool_calls"}],
    }
