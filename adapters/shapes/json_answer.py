"""Answers that have to be JSON: what is asked for, whether a text is that, and what to do when it is not."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import msgspec

from adapters.errors import ProviderError
from adapters.messages import read_unique
from adapters.patches import invalid
from adapters.shapes.base import Answer, Caller
from adapters.shapes.bodies import Message, changed, value_of
from adapters.shapes.json_schema import Schema
from adapters.shapes.usage import sum_of_calls
from adapters.types import Body, FailureKind

_SCHEMA: Final = "response_format.json_schema.schema"
_NOT_JSON: Final = "it is not JSON"
# Ends that say by themselves that the answer is not whole.
_CUT: Final = frozenset(("length", "content_filter"))
_FENCE: Final = "```"
# The same schema comes with request after request, and each is read several times.
_REMEMBERED: Final = 64
_MOST_BYTES: Final = 65_536


class JsonFormat:
    """A ``response_format`` that can be checked."""

    __slots__ = ("_schema", "schema")

    def __init__(self, schema: Any, param: str = _SCHEMA) -> None:
        """*schema* is the client's own: whatever was sent in its place, this is what an answer has to conform to."""
        self.schema = schema
        self._schema = Schema(schema, param)

    def conforms(self, answer: Answer) -> bool:
        """Whether every choice is JSON of this format."""
        return all(not self.problems(text_of(choice)) for choice in answer["choices"])

    def problems(self, text: str) -> list[str]:
        """What is wrong with *text*."""
        try:
            value = msgspec.json.decode(json_in(text))
        except (msgspec.DecodeError, RecursionError):
            return [_NOT_JSON]
        return self._schema.problems(value)


def read_format(body: Body) -> JsonFormat | None:
    """What the body's ``response_format`` asks for; None where it is nothing that could be checked."""
    raw = bytes(body.get("response_format", b"null"))
    return _read(raw) if len(raw) <= _MOST_BYTES else _read.__wrapped__(raw)


@lru_cache(maxsize=_REMEMBERED)
def _read(raw: bytes) -> JsonFormat | None:
    wanted = read_unique(msgspec.Raw(raw), "response_format")
    if not isinstance(wanted, dict):
        return None
    if wanted.get("type") == "json_object":
        return JsonFormat({"type": "object"})
    if wanted.get("type") != "json_schema":
        return None
    wrapped = wanted.get("json_schema")
    if not isinstance(wrapped, dict) or not isinstance(wrapped.get("schema"), dict):
        raise invalid(_SCHEMA, f"'{_SCHEMA}' has to be a JSON schema, which is an object.")
    return JsonFormat(wrapped["schema"])


def text_of(choice: dict[str, Any]) -> str:
    """The text of a choice, without what models put around JSON."""
    content = (choice.get("message") or {}).get("content")
    return content if isinstance(content, str) else ""


def json_in(text: str) -> str:
    """*text* without the fence of a code block around it."""
    bare = text.strip()
    if bare.startswith(_FENCE) and bare.endswith(_FENCE) and len(bare) > 2 * len(_FENCE):
        inner = bare[len(_FENCE) : -len(_FENCE)]
        first, newline, rest = inner.partition("\n")
        bare = (rest if newline and first.strip().isalpha() else inner).strip()
    return bare


def is_judged(choice: dict[str, Any]) -> bool:
    """Whether a choice has to conform: not when it was cut, when the model refused, or when it calls tools."""
    message = choice.get("message") or {}
    return choice.get("finish_reason") not in _CUT and not message.get("refusal") and not message.get("tool_calls")


async def conforming(body: Body, wanted: JsonFormat, caller: Caller, param: str = "response_format") -> Answer:
    """The answer to *body*, which conforms to *wanted*: asked for once more where it does not, then given up.

    Raises `ProviderError` MALFORMED with the code ``schema_validation_failed``.
    """
    answer = await caller.whole(body)
    problems, said = _problems(answer, wanted)
    if problems:
        earlier = answer.get("usage")
        answer = await caller.whole(_again(body, said, problems))
        usage = sum_of_calls(earlier, answer.get("usage"))
        if usage is not None:
            answer["usage"] = usage
        problems, _ = _problems(answer, wanted)
    if problems:
        raise ProviderError(
            FailureKind.INVALID_OUTPUT,
            f"The model's answer does not conform to the schema, nor did a second one: {'; '.join(problems)}.",
            param=param,
            code="schema_validation_failed",
            tries=1,
        )
    for choice in answer["choices"]:
        if is_judged(choice):
            choice["message"]["content"] = json_in(text_of(choice))
    return answer


def _problems(answer: Answer, wanted: JsonFormat) -> tuple[list[str], str]:
    """What is wrong with the first choice that does not conform, and what it said."""
    for choice in answer["choices"]:
        if is_judged(choice):
            text = text_of(choice)
            problems = wanted.problems(text)
            if problems:
                return problems, text
    return [], ""


def _again(body: Body, said: str, problems: list[str]) -> Body:
    messages: list[Message] = value_of(body, "messages")
    complaint = (
        "That is not what was asked for: "
        + "; ".join(problems)
        + ". Answer again, with nothing but JSON that conforms to the schema."
    )
    return changed(
        body,
        messages=[
            *messages,
            {"role": "assistant", "content": said or "(nothing)"},
            {"role": "user", "content": complaint},
        ],
    )
