"""Forms of values that a target turns out to insist on: of stops, of log probabilities, of messages that ask for JSON.

A form says the same in another way, so whatever the client relies on stays as it is. A refusal that names two forms is
about something else, and teaches nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import msgspec

from adapters.draft import Draft, Unsupported
from adapters.logprob_patches import AsCount
from adapters.parameter_patches import Stops, raw
from adapters.patches import Patch
from adapters.shapes.bodies import wanted_format, with_instruction
from adapters.told import Told
from adapters.types import Action, Operation

_WANTED: Final = (
    r"(?:expected|expects|must be|should be|has to be|input should be)(?: (?:an?|of type))? [`'\"]?(?:valid )?"
)
_LIST_WANTED: Final = re.compile(
    rf"{_WANTED}(?:list|array|sequence)\b|is not of type 'array'|cannot unmarshal string|of type \[\]string"
)
_TEXT_WANTED: Final = re.compile(
    rf"{_WANTED}(?:string|str)\b|is not of type 'string'|cannot unmarshal array"
    r"|invalid type for '\w+' field: \[\]"
)
_EITHER: Final = re.compile(r"\beither\b|\bor (?:an? )?(?:list|array|sequence|string)\b")
_COUNT_WANTED: Final = re.compile(rf"{_WANTED}(?:int(?:eger)?|number|[iu](?:8|16|32|64))\b|cannot unmarshal bool")
_FLAG_WANTED: Final = re.compile(rf"{_WANTED}bool(?:ean)?\b")
_ABOUT_STOPS: Final = re.compile(r"(?<!\w)stop(?!\w)")
_ABOUT_LOGPROBS: Final = re.compile(r"(?<!\w)logprobs(?!\w)")
_SAY_JSON: Final = re.compile(r"(?:must|should|has to|have to|needs? to) (?:contain|include|mention)\b.{0,30}\bjson\b")
_INSTRUCTION: Final = "Answer with JSON."
_READ: Final = ("system", "developer", "user")
"""Whose messages are looked at for the word."""


class NewForm(NamedTuple):
    """What is sent in another form from now on."""

    param: str
    """What is told to be changed."""
    action: Action
    patches: tuple[tuple[str, Patch], ...]
    """Each with the parameter that it is for."""


def form_told(draft: Draft, told: Told, most_alternatives: int | None = None) -> NewForm | None:
    """The form that a refusal of *draft* asks for; None where it asks for none, or may not have it.

    *most_alternatives* is the largest ``top_logprobs`` that the target is known to take.
    """
    if draft.unsupported is Unsupported.REJECT:
        return None
    return _of_stops(draft, told) or _of_logprobs(draft, told, most_alternatives) or _of_json(draft, told)


def _of_stops(draft: Draft, told: Told) -> NewForm | None:
    given = draft.body.get("stop")
    if given is None or not (told.named == "stop" or _ABOUT_STOPS.search(told.text)):
        return None
    wants_list, wants_text = _LIST_WANTED.search(told.text), _TEXT_WANTED.search(told.text)
    if bool(wants_list) is bool(wants_text) or _EITHER.search(told.text):
        return None
    stops = msgspec.json.decode(given)
    if wants_list and isinstance(stops, str):
        return NewForm("stop", Action.REWRITTEN, (("stop", Stops(None, as_list=True)),))
    if wants_text and isinstance(stops, list) and stops and all(isinstance(stop, str) for stop in stops):
        action = Action.REWRITTEN if len(stops) == 1 else Action.EMULATED
        return NewForm("stop", action, (("stop", Stops(1, as_text=True)),))
    return None


def _of_logprobs(draft: Draft, told: Told, most: int | None) -> NewForm | None:
    if draft.operation is not Operation.CHAT or bytes(draft.body.get("logprobs", b"")) != b"true":
        return None
    if not (told.named == "logprobs" or _ABOUT_LOGPROBS.search(told.text)):
        return None
    if not _COUNT_WANTED.search(told.text) or _FLAG_WANTED.search(told.text):
        return None
    count = AsCount(most)
    return NewForm("logprobs", Action.MAPPED, (("logprobs", count), ("top_logprobs", count)))


def _of_json(draft: Draft, told: Told) -> NewForm | None:
    if draft.operation is not Operation.CHAT or wanted_format(draft.body) != "json_object":
        return None
    if not _SAY_JSON.search(told.text) or says_json(draft.body["messages"]):
        return None
    return NewForm("messages", Action.REWRITTEN, (("response_format", SayJson()),))


@dataclass(frozen=True, slots=True)
class SayJson:
    """Say in words that the answer is to be JSON, where the messages do not and the format is asked for."""

    def __call__(self, draft: Draft) -> None:
        off = draft.unsupported is Unsupported.REJECT or draft.operation is not Operation.CHAT
        if off or wanted_format(draft.body) != "json_object" or says_json(draft.body["messages"]):
            return
        messages = msgspec.json.decode(draft.body["messages"])
        if isinstance(messages, list) and all(isinstance(message, dict) for message in messages):
            draft.body["messages"] = raw(with_instruction(messages, _INSTRUCTION))
            draft.adjusted("messages", Action.REWRITTEN)


def says_json(messages: msgspec.Raw) -> bool:
    """Whether the word stands in what a model is told by *messages*."""
    if b"json" not in bytes(messages).lower():
        return False
    decoded: Any = msgspec.json.decode(messages)
    told = [one for one in decoded if isinstance(one, dict) and one.get("role") in _READ]
    return any("json" in str(one.get("content")).lower() for one in told)
