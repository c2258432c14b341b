"""Parameters that a target refuses by name: left out, or brought within the bounds that it tells."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from adapters.draft import Draft, Unsupported
from adapters.learned_bounds import bounds_told, holds, is_off, off_refused, one_alone
from adapters.limit_patches import NEW_LIMIT, OLD_LIMIT
from adapters.patches import ADVISORY, CONTRACT, is_neutral, leave_out
from adapters.pupil import Learned, Pupil
from adapters.told import Told, mentioned
from adapters.types import Action

_NEVER_LEFT_OUT: Final = frozenset((
    "model", "messages", "input", "prompt", "stream", "tools", "tool_choice", OLD_LIMIT, NEW_LIMIT,
))  # fmt: skip
_WORDS: Final = ("reasoning_effort", "verbosity", "service_tier")
_OTHER_WORDS: Final = re.compile(r"must be (?:one of|either)|supported values|invalid value|not a valid|should be")


@dataclass(frozen=True, slots=True)
class LeaveOutAsTold:
    """Leave out what the target has refused, as far as that may be."""

    param: str
    provider: str
    when: str = ""
    """Of which requests that was said, as in `OneAlone`."""

    def __call__(self, draft: Draft) -> None:
        if may_go(draft, self.param) and holds(self.when, draft):
            leave_out(draft, self.param, self.provider)


@dataclass(frozen=True, slots=True)
class LeaveOutOff:
    """Leave out a number that says that it shall have no effect, for a target that takes no such number."""

    param: str
    provider: str

    def __call__(self, draft: Draft) -> None:
        if may_go(draft, self.param) and is_off(self.param, draft):
            leave_out(draft, self.param, self.provider)


def may_go(draft: Draft, param: str) -> bool:
    """Whether the client's *param* may be left out for a target that does not take it."""
    if not param or param not in draft.body or param in _NEVER_LEFT_OUT:
        return False
    if is_neutral(param, draft.body[param]) or draft.unsupported is Unsupported.DROP:
        return True
    return param in ADVISORY or (param not in CONTRACT and draft.unsupported is not Unsupported.REJECT)


def learn_bounds(draft: Draft, told: Told, pupil: Pupil) -> Learned | None:
    provider = pupil.target.provider
    off = off_refused(draft, told)
    if may_go(draft, off):
        pupil.learn_patch(off, LeaveOutOff(off, provider))
        return off, Action.DROPPED
    alone = one_alone(draft, told)
    if alone is not None and may_go(draft, alone.name):
        pupil.learn_patch(alone.name, LeaveOutAsTold(alone.name, provider, alone.when))
        return alone.name, Action.DROPPED
    clamp = bounds_told(draft, told, provider)
    if clamp is None:
        return None
    pupil.learn_patch(clamp.param, clamp)
    return clamp.param, Action.CLAMPED


def learn_parameter(draft: Draft, told: Told, pupil: Pupil) -> Learned | None:
    named = told.named
    too_long = named in ADVISORY and "too long" in told.text
    if not told.unsupported and not too_long:
        # A word of a list that the target has another list of.
        words = (name for name in _WORDS if name in told.text) if _OTHER_WORDS.search(told.text) else ()
        named = next(iter(words), "")
    elif named not in draft.body:
        named = mentioned(told, draft.body)
    if not may_go(draft, named):
        return None
    pupil.learn_patch(named, LeaveOutAsTold(named, pupil.target.provider))
    return named, Action.DROPPED
