"""What an attempt may cost, reserved before it leaves, and resolved exactly once on every way out."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, Protocol

import msgspec

from adapters.pricing import cost_nusd
from adapters.target import Target
from adapters.types import Usage


class Resolution(StrEnum):
    """How a hold ended."""

    SETTLED = "settled"  # by usage the provider gave
    ESTIMATED = "estimated"  # by what was seen of an answer that broke off or carried no usage
    VOID = "void"  # nothing was sent, or the provider refused


_SETTLED: Final = Resolution.SETTLED


class HoldResolvedTwiceError(Exception):
    """A hold was resolved a second time: a bug, for the money would be booked twice."""


class Hold(msgspec.Struct, eq=False):
    """Money set aside for one attempt at one target. `settle`, `estimate` or `void` it, once."""

    ledger: Ledger
    target: Target
    choices: int = 1
    """How many answers it pays for: each may be as long as the limit allows."""
    resolution: Resolution | None = None
    usage: Usage | None = None
    cost_nusd: int | None = None

    def settle(self, usage: Usage, requests: Sequence[Usage] = ()) -> None:
        """Book what the provider says was used; *requests* are the parts where there were several."""
        if self.resolution is not None or requests:
            self._resolve(_SETTLED, usage, requests)
            return
        # As `_resolve` does, for what nearly every attempt comes to.
        self.resolution = _SETTLED
        self.usage = usage
        self.cost_nusd = cost_nusd(self.target.price, usage)
        self.ledger.resolved(self)

    def estimate(self, usage: Usage, requests: Sequence[Usage] = ()) -> None:
        """Book what we counted ourselves, because no figure came."""
        self._resolve(Resolution.ESTIMATED, usage, requests)

    def void(self) -> None:
        """Give everything back: nothing is owed."""
        self._resolve(Resolution.VOID, None)

    def _resolve(self, resolution: Resolution, usage: Usage | None, requests: Sequence[Usage] = ()) -> None:
        if self.resolution is not None:
            raise HoldResolvedTwiceError(f"{self.target.name}: {self.resolution} and now {resolution}")
        self.resolution = resolution
        if usage is not None:
            self.usage = usage
            self.cost_nusd = cost_nusd(self.target.price, *(requests or (usage,)))
        self.ledger.resolved(self)


class Ledger(Protocol):
    """Where holds are taken from and booked to."""

    open_holds: int

    def hold(self, key_id: str, target: Target, choices: int = 1) -> Hold:
        """Reserve the worst case of an attempt that gives *choices*; must be resolved by the caller."""

    def resolved(self, hold: Hold) -> None:
        """Called by a hold when it is resolved."""


class CountingLedger:
    """The ledger of keys without a budget: there is nothing to reserve, so it counts and books nothing."""

    __slots__ = ("open_holds", "resolutions")

    def __init__(self) -> None:
        self.open_holds = 0
        self.resolutions: dict[Resolution, int] = dict.fromkeys(Resolution, 0)

    def hold(self, key_id: str, target: Target, choices: int = 1) -> Hold:
        self.open_holds += 1
        return Hold(self, target, choices)

    def resolved(self, hold: Hold) -> None:
        self.open_holds -= 1
        if hold.resolution is not None:
            self.resolutions[hold.resolution] += 1
