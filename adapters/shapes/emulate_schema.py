"""A JSON schema on a target that has none, or does not keep to it: asked for in words, checked, asked for once more."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import ClassVar, Final

import msgspec

from adapters.draft import Draft
from adapters.errors import ProviderError
from adapters.shapes.base import Caller, Outcome
from adapters.shapes.bodies import changed, may_emulate, value_of, wanted_format, with_instruction, without
from adapters.shapes.json_answer import JsonFormat, conforming, read_format
from adapters.types import Action, Body, FailureKind, Operation

_JSON_OBJECT: Final = {"type": "json_object"}
_ANY_OBJECT: Final = "Answer with one JSON object, and nothing else."


class How(Enum):
    """What the target can be asked for."""

    CHECKED = auto()
    """It takes the schema, but does not promise to keep to it."""
    JSON_OBJECT = auto()
    """It promises JSON, not the schema."""
    PROMPT = auto()
    """It promises nothing."""


@dataclass(frozen=True, slots=True)
class EmulateSchema:
    """The formats in *how* are emulated, each in its way; the answer is checked against the client's own schema."""

    provider: str
    schema: How | None
    json_object: How | None = None
    keywords: frozenset[str] = frozenset()
    """With `CHECKED`: the target keeps to a schema unless one of these is in it."""

    param: ClassVar[str] = "response_format"
    action: ClassVar[Action] = Action.EMULATED
    triggers: ClassVar[frozenset[str]] = frozenset(("response_format",))

    @property
    def lossy(self) -> bool:
        return self.schema is not How.CHECKED

    def applies(self, draft: Draft) -> bool:
        how = self._how(draft.body)
        if how is None or draft.operation is not Operation.CHAT or read_format(draft.body) is None:
            return False
        if how is How.CHECKED:
            return not self.keywords or _mentions(draft.body, self.keywords)
        return may_emulate(draft, self.param, self.provider)

    def first(self, body: Body) -> Body:
        how, wanted = self._how(body), read_format(body)
        if wanted is None or how is None or how is How.CHECKED:
            return body
        messages = with_instruction(value_of(body, "messages"), _instruction(body, wanted))
        asked = changed(without(body, "response_format"), messages=messages)
        return changed(asked, response_format=_JSON_OBJECT) if how is How.JSON_OBJECT else asked

    async def answer(self, body: Body, caller: Caller) -> Outcome:
        wanted = read_format(body)
        if wanted is None:
            raise ProviderError(FailureKind.BAD_REQUEST, "There is no format to keep to.", sent=False)
        return await conforming(self.first(body), wanted, caller)

    def _how(self, body: Body) -> How | None:
        wanted = wanted_format(body)
        if wanted == "json_schema":
            return self.schema
        return self.json_object if wanted == "json_object" else None


def _mentions(body: Body, keywords: frozenset[str]) -> bool:
    raw = bytes(body["response_format"])
    return any(b'"%b"' % keyword.encode() in raw for keyword in keywords)


def _instruction(body: Body, wanted: JsonFormat) -> str:
    if wanted_format(body) == "json_object":
        return _ANY_OBJECT
    schema = msgspec.json.encode(wanted.schema).decode()
    return f"Answer with JSON that conforms to this JSON schema, and nothing else:\n{schema}"
