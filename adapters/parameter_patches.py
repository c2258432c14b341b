"""Patches for values: bounds, words of a closed list, stops, and what goes under another parameter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from adapters.draft import Draft, Unsupported
from adapters.patches import is_neutral, leave_out, unsupported
from adapters.types import Action

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def raw(value: Any) -> msgspec.Raw:
    """*value* as it stands in a body."""
    return msgspec.Raw(_encode(value))


@dataclass(frozen=True, slots=True)
class Clamp:
    """Bring a number within the bounds of the target. Where *lossy*, a target that takes it as it is goes first."""

    param: str
    provider: str
    low: float | None = None
    high: float | None = None
    above: float | None = None
    """The value has to be greater than this."""
    below: float | None = None
    """The value has to be less than this."""
    whole: bool = False
    lossy: bool = False

    def __call__(self, draft: Draft) -> None:
        value = draft.body[self.param]
        number = _decode(value)
        if number is None:
            del draft.body[self.param]
            return
        if not isinstance(number, (int, float)) or isinstance(number, bool):
            return
        nearest = self._nearest(number)
        if nearest == number:
            return
        if draft.unsupported is Unsupported.REJECT:
            raise unsupported(self.param, self.provider, f"The nearest value it takes is {nearest:g}.")
        draft.body[self.param] = raw(int(nearest) if self.whole else nearest)
        draft.adjusted(self.param, Action.CLAMPED)
        draft.lossy = draft.lossy or self.lossy

    def _nearest(self, number: float) -> float:
        if self.low is not None and number < self.low:
            return self.low
        if self.high is not None and number > self.high:
            return self.high
        if self.above is not None and number <= self.above:
            return self.above + _STEP
        if self.below is not None and number >= self.below:
            return self.below - _STEP
        return number


_STEP: Final = 0.001
"""How near to an excluded bound a value is brought."""


@dataclass(frozen=True, slots=True)
class AtMost:
    """Refuse a number above *most*."""

    param: str
    provider: str
    most: int

    def __call__(self, draft: Draft) -> None:
        given = bytes(draft.body[self.param])
        if given == b"null":
            del draft.body[self.param]
        elif given.isdigit() and int(given) > self.most:
            if draft.unsupported is Unsupported.DROP:
                draft.body[self.param] = msgspec.Raw(b"%d" % self.most)
                draft.adjusted(self.param, Action.CLAMPED)
                return
            raise unsupported(self.param, self.provider, f"It takes at most {self.most}.")


@dataclass(frozen=True, slots=True)
class Omit:
    """Leave out values that say what holds anyway."""

    param: str
    values: frozenset[int | float | str]

    def __call__(self, draft: Draft) -> None:
        given = _decode(draft.body[self.param])
        if isinstance(given, (int, float, str)) and not isinstance(given, bool) and given in self.values:
            del draft.body[self.param]


@dataclass(frozen=True, slots=True)
class WithoutSign:
    """Take the sign off a whole number."""

    param: str

    def __call__(self, draft: Draft) -> None:
        given = bytes(draft.body[self.param])
        if given.startswith(b"-"):
            draft.body[self.param] = msgspec.Raw(given[1:])
            draft.adjusted(self.param, Action.MAPPED)


@dataclass(frozen=True, slots=True)
class Words:
    """Send the target's word for a value; one it has no word for is left out, or refused, by the parameter's class."""

    param: str
    provider: str
    words: Mapping[str, str]
    allowed: frozenset[str]
    """Empty: any."""

    def __call__(self, draft: Draft) -> None:
        given = _decode(draft.body[self.param])
        if not isinstance(given, str):
            if given is None:
                del draft.body[self.param]
            return
        word = self.words.get(given, given)
        if self.allowed and word not in self.allowed:
            leave_out(draft, self.param, self.provider, f"It takes: {', '.join(sorted(self.allowed))}.")
        elif word != given:
            draft.body[self.param] = raw(word)
            draft.adjusted(self.param, Action.MAPPED)


@dataclass(frozen=True, slots=True)
class Stops:
    """Send as many stop sequences as the target takes, in its form; the answer is watched for the others."""

    most: int | None
    """None: no bound is known."""
    as_list: bool = False
    as_text: bool = False
    """The one that is sent is no list."""

    def __call__(self, draft: Draft) -> None:
        given = _decode(draft.body["stop"])
        if isinstance(given, str) and (self.most is None or self.most > 0):
            if not given:
                del draft.body["stop"]
            elif self.as_list:
                draft.body["stop"] = raw([given])
                draft.adjusted("stop", Action.REWRITTEN)
            return
        stops = [given] if isinstance(given, str) else list(dict.fromkeys(given or ()))
        stops = [stop for stop in stops if stop]
        if not stops:
            del draft.body["stop"]
            return
        most = len(stops) if self.most is None else self.most
        if len(stops) <= most:
            if self.as_text and len(stops) == 1:
                draft.body["stop"] = raw(stops[0])
                draft.adjusted("stop", Action.REWRITTEN)
            elif len(stops) != len(given):
                draft.body["stop"] = raw(stops)
            return
        if most:
            draft.body["stop"] = raw(stops[0] if self.as_text and most == 1 else stops[:most])
        else:
            del draft.body["stop"]
        needs = draft.answer_needs()
        needs.stops = (*stops[most:], *needs.stops)  # an earlier patch may have sent fewer than there were
        draft.adjusted("stop", Action.EMULATED)


@dataclass(frozen=True, slots=True)
class FoldIntoUser:
    """Send the value as ``user``, unless the client says who that is."""

    param: str

    def __call__(self, draft: Draft) -> None:
        value = draft.body.pop(self.param)
        if is_neutral(self.param, value):
            return
        free = "user" not in draft.body or bytes(draft.body["user"]) == b"null"
        if free:
            draft.body["user"] = value
        draft.adjusted(self.param, Action.RENAMED if free else Action.DROPPED)


@dataclass(frozen=True, slots=True)
class AsTool:
    """Ask for what the target has as a tool of its own: *tool* joins the client's tools.

    Where *alone*, tools do not go together with a form of the answer.
    """

    param: str
    provider: str
    tool: Mapping[str, Any]
    alone: bool = False

    def __call__(self, draft: Draft) -> None:
        form = draft.body.get("response_format")
        if self.alone and form is not None and not is_neutral("response_format", form):
            leave_out(draft, self.param, self.provider, "It does not go together with 'response_format'.")
            return
        if is_neutral(self.param, draft.body.pop(self.param)):
            return
        given = _decode(draft.body["tools"]) if "tools" in draft.body else None
        draft.body["tools"] = raw([*(given or ()), dict(self.tool)])
        draft.adjusted(self.param, Action.MAPPED)
