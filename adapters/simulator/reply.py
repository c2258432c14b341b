"""What a simulated model says: a function of the request alone, so that a round trip can be checked word for word.

A user's message may hold instructions, and is followed to the letter:

- ``Say exactly: X`` (to the end of the line) gives X; ``Count to N`` gives ``1 2 ... N``;
- ``Call tool NAME with {json}`` makes that call where the tool is offered, several in one message parallel calls; once
  its results are there, ``The tool said: A | B``.

A response format, or a schema in the prompt, gives the schema's smallest instance, or one that holds the calls that
were told, where it has a place for them; a forced choice of a tool that was not asked for calls it with its smallest
arguments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from adapters.simulator.asked import Asked
from adapters.simulator.sample import Wish, sample

GREETING: Final = "Hello from the simulated model."
THOUGHT: Final = "Let me think about it."

_INSTRUCTION: Final = re.compile(
    r"Say exactly: *(?P<say>[^\n]*)|Count to (?P<count>\d{1,4})|Call tool (?P<tool>[\w.-]+) with (?=\{)"
)
_JSON_OBJECT: Final = {"type": "object", "properties": {"answer": {"type": "string"}}}
_UNIONS: Final = frozenset(("anyOf", "oneOf"))
_SCHEMA_MARKS: Final = frozenset(("properties", "$ref")) | _UNIONS
_read_json = json.JSONDecoder().raw_decode


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call; *arguments* are JSON text."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model says, before anything is cut off."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    reasoning: str = ""


@dataclass(frozen=True, slots=True)
class _Instructions:
    says: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()


def reply_to(asked: Asked) -> Reply:
    """The reply to a chat."""
    reasoning = THOUGHT if asked.thinks else ""
    calls = _calls(asked)
    if calls:
        return Reply("", calls, reasoning)
    return Reply(_text(asked), (), reasoning)


def say(text: str) -> str:
    """The reply to a bare prompt."""
    return " ".join(_instructions(text).says) or GREETING


def _calls(asked: Asked) -> tuple[Call, ...]:
    if not asked.tools or asked.choice == "none":
        return ()
    told, since = _last_instructions(asked.messages)
    wanted = tuple(call for call in told.calls if call.name in asked.tools)
    if asked.forced_tool is not None:
        named = [call for call in wanted if call.name == asked.forced_tool]
        return _at_most(named or [_smallest(asked.forced_tool, asked)], asked)
    answered = any(message.get("role") == "tool" for message in since)
    if wanted and not answered:
        return _at_most(wanted, asked)
    if asked.choice == "required":
        called = {call["function"]["name"] for message in since for call in message.get("tool_calls") or ()}
        name = next((name for name in asked.tools if name not in called), next(iter(asked.tools)))
        return (_smallest(name, asked),)
    return ()


def _at_most(calls: Sequence[Call], asked: Asked) -> tuple[Call, ...]:
    return tuple(calls if asked.parallel else calls[:1])


def _smallest(name: str, asked: Asked) -> Call:
    return Call(name, json.dumps(sample(asked.tools[name]) or {}))


def _text(asked: Asked) -> str:
    told, since = _last_instructions(asked.messages)
    spoken = _spoken(told, since)
    # What is not offered as a tool may still be asked for in words, until it has been answered.
    answered = any(message.get("role") == "assistant" for message in since)
    calls = () if answered or asked.tools else [(call.name, json.loads(call.arguments)) for call in told.calls]
    wish = Wish(calls, spoken or GREETING)
    if asked.schema is not None:
        return json.dumps(sample(asked.schema, wish))
    in_prompt = _schema_in(asked.messages)
    if asked.json_object:
        return json.dumps(sample(in_prompt or _JSON_OBJECT, wish))
    if in_prompt is not None and (not told.says or _UNIONS & in_prompt.keys()):
        return json.dumps(sample(in_prompt, wish))
    return spoken or GREETING


def _spoken(told: _Instructions, since: Sequence[Mapping[str, Any]]) -> str | None:
    results = [text_of(message.get("content")) for message in since if message.get("role") == "tool"]
    if told.calls and not results:
        # Without a role of their own, results are the next thing a user says, after a colon.
        later = [text_of(message.get("content")) for message in since if message.get("role") == "user"]
        results = [line.partition(": ")[2] for text in later for line in text.splitlines() if ": " in line]
    if results:
        return f"The tool said: {' | '.join(results)}"
    return " ".join(told.says) if told.says else None


def _last_instructions(messages: Sequence[Mapping[str, Any]]) -> tuple[_Instructions, Sequence[Mapping[str, Any]]]:
    """The last instructions of a user, and what was said since."""
    last = -1
    for number in reversed(range(len(messages))):
        if messages[number].get("role") == "user":
            last = max(last, number)
            found = _instructions(text_of(messages[number].get("content")))
            if found.says or found.calls:
                return found, messages[number + 1 :]
    return _Instructions(), messages[last + 1 :]


def _instructions(text: str) -> _Instructions:
    says: list[str] = []
    calls: list[Call] = []
    for found in _INSTRUCTION.finditer(text):
        if found["say"] is not None:
            says.append(found["say"].strip())
        elif found["count"] is not None:
            says.append(" ".join(str(number) for number in range(1, int(found["count"]) + 1)))
        else:
            arguments = _json_at(text, found.end())
            if arguments is not None:
                calls.append(Call(found["tool"], json.dumps(arguments)))
    return _Instructions(tuple(says), tuple(calls))


def _schema_in(messages: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """A schema written into the prompt by someone whose provider knows no schemas; the last, as it is the task."""
    found: Mapping[str, Any] | None = None
    for message in messages:
        text = text_of(message.get("content")) if message.get("role") in ("system", "developer", "user") else ""
        if "json" in text.lower():
            schemas = [one for one in _objects_in(text) if _SCHEMA_MARKS & one.keys()]
            found = schemas[-1] if schemas else found
            if found is None and message.get("role") != "user" and "json object" in text.lower():
                found = _JSON_OBJECT
    return found


def _objects_in(text: str) -> Iterator[Mapping[str, Any]]:
    """The JSON objects in *text* that are in no other."""
    place = text.find("{")
    while place >= 0:
        try:
            found, end = _read_json(text, place)
        except (ValueError, RecursionError):
            found, end = None, place + 1
        if isinstance(found, Mapping):
            yield found
        place = text.find("{", end)


def _json_at(text: str, place: int) -> Mapping[str, Any] | None:
    try:
        found, _ = _read_json(text, place)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, Mapping) else None


def text_of(content: Any) -> str:
    """The text of a message's content, in whichever form."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    return "".join(str(part.get("text") or "") for part in parts if isinstance(part, Mapping))
