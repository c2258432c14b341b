"""Limits that a refusal tells with a number: of the answer's tokens, and of the inputs at once."""

from __future__ import annotations

import re
from typing import Final

from adapters.draft import Draft, Unsupported
from adapters.embeddings import inputs_of
from adapters.learned_bounds import least_told
from adapters.limit_patches import NEW_LIMIT, OLD_LIMIT
from adapters.pupil import Learned, Pupil
from adapters.told import Told
from adapters.types import Action, Operation

_LIMITS: Final = {OLD_LIMIT: NEW_LIMIT, NEW_LIMIT: OLD_LIMIT}
_ABOUT_THE_LIMIT: Final = re.compile(r"max_(?:completion_|output_|new_)?tokens")
_TOO_MUCH: Final = re.compile(
    r"less than|at most|no more than|up to|maximum|exceed|too (?:large|big|high)|greater than|larger than|range|<="
)
_ABOUT_INPUTS: Final = re.compile(r"\b(?:batch|inputs?|texts|items|array|list|contents)\b")
_AT_MOST: Final = re.compile(
    r"(?:larger than|greater than|more than|at most|less than|or equal to|up to|exceed\w*|limit\w*|max\w*)"
    r"\D{0,40}?(\d+)\b(?! ?(?:[kmg]?i?b|bytes?|char\w*|words?|dim\w*|requests?|rpm|s|sec\w*|%)\b)"
)
"""A number of inputs: not one of megabytes, or of characters in each."""
_NUMBERS: Final = re.compile(r"(?<![\w.-])\d{1,9}\b")


def learn_limit(draft: Draft, told: Told, pupil: Pupil) -> Learned | None:
    body = draft.body
    given = next((name for name in (NEW_LIMIT, OLD_LIMIT) if name in body and bytes(body[name]).isdigit()), None)
    if given is None or not (told.named in _LIMITS or _ABOUT_THE_LIMIT.search(told.text)):
        return None
    if told.named in _LIMITS and told.unsupported and draft.operation is Operation.CHAT:
        pupil.learn_limit(_LIMITS[told.named], None)
        return given, Action.RENAMED
    asked = int(bytes(body[given]))
    if draft.unsupported is Unsupported.REJECT:
        return None
    lower = [number for number in map(int, _NUMBERS.findall(told.text)) if 1 < number < asked]
    if lower and _TOO_MUCH.search(told.text):
        pupil.learn_limit(None, max(lower))
    elif (least := least_told(told.text, asked)) is not None:
        pupil.learn_limit(None, None, least)
    else:
        return None
    return given, Action.CLAMPED


def learn_inputs(draft: Draft, told: Told, pupil: Pupil) -> Learned | None:
    if draft.operation is not Operation.EMBEDDINGS or "token" in told.text or not _ABOUT_INPUTS.search(told.text):
        return None
    given = inputs_of(draft.body) or 0
    lower = [number for number in map(int, _AT_MOST.findall(told.text)) if 0 < number < given]
    if not lower:
        return None
    pupil.learn_inputs(min(lower))
    return "input", Action.SPLIT
