"""What can be made to go wrong: ``NAME`` or ``NAME=VALUE``, from the command line, a header, or a model's name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from adapters.validation import did_you_mean

HEADER: Final = "x-simulate"
MODEL_PREFIX: Final = "simulate-"


class FaultKind(StrEnum):
    """The faults; the value is how each is named."""

    STATUS = "status"  # =CODE: that status, with an error in the provider's envelope
    CASE = "case"  # =NAME: a case of the provider's file
    RATE_LIMIT = "rate_limit"  # =SECONDS: until when to wait
    OVERLOAD = "overload"  # =SECONDS, as above
    CONTEXT = "context"  # the prompt is said to be too long
    STREAM_ERROR = "stream_error"  # =COUNT: an error event after so many pieces
    CUT = "cut"  # =COUNT: the connection closes after so many pieces
    HANG = "hang"  # =COUNT: silence after so many pieces; 0 sends no head
    MALFORMED = "malformed"  # what should be JSON is cut in half
    EMPTY = "empty"  # an answer without choices
    SLOW = "slow"  # =SECONDS between the pieces


_DEFAULTS: Final = {
    FaultKind.STATUS: "500",
    FaultKind.CASE: "validation",
    FaultKind.RATE_LIMIT: "7",
    FaultKind.OVERLOAD: "3",
    FaultKind.STREAM_ERROR: "2",
    FaultKind.CUT: "2",
    FaultKind.HANG: "0",
    FaultKind.SLOW: "0.5",
}
_IN_NAME: Final = re.compile(r"([a-z_]+?)(?:[-=]([\w.]+))?")


class FaultError(ValueError):
    """There is no such fault; the message says which there are."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong, and how."""

    kind: FaultKind
    value: str = ""

    @property
    def number(self) -> float:
        """The value as a number."""
        return float(self.value)

    @classmethod
    def parse(cls, text: str) -> Fault:
        """Read ``NAME`` or ``NAME=VALUE`` (in a model's name ``NAME-VALUE``); raises `FaultError`."""
        found = _IN_NAME.fullmatch(text.strip().lower())
        name, value = (found[1], found[2]) if found is not None else (text, None)
        try:
            kind = FaultKind(name)
        except ValueError:
            names = [kind.value for kind in FaultKind]
            raise FaultError(f"'{name}' is no fault.{did_you_mean(name, names)} ({', '.join(names)})") from None
        fault = cls(kind, value or _DEFAULTS.get(kind, ""))
        if kind in _DEFAULTS and kind is not FaultKind.CASE:
            fault._check_number()
        return fault

    def _check_number(self) -> None:
        try:
            number = self.number
        except ValueError:
            raise FaultError(f"'{self.kind}={self.value}': a number is expected after '{self.kind}='.") from None
        if self.kind is FaultKind.STATUS and not (400 <= number <= 599 and number.is_integer()):
            raise FaultError(f"'{self.kind}={self.value}': a status from 400 to 599 is expected.")


def fault_of_model(model: str) -> Fault | None:
    """The fault a model's name asks for, such as ``simulate-rate_limit-7``, wherever in its path it stands last."""
    name = model.rpartition("/")[2]
    return Fault.parse(name.removeprefix(MODEL_PREFIX)) if name.startswith(MODEL_PREFIX) else None
