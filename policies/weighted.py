"""By lot: each target comes first as often as its weight says, and those that do not follow by lot as well."""

from __future__ import annotations

import random
from collections.abc import Sequence

from policies.base import Candidate, policy


@policy("weighted")
def weighted(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Drawn one after the other without putting back; those of weight 0 come last, in the order of the list."""
    return sorted(candidates, key=_place)


def _place(candidate: Candidate) -> tuple[float, int]:
    """Who of several independent exponential times comes first is a draw in proportion to their rates."""
    weight = candidate.target.weight
    if weight <= 0:
        return float("inf"), candidate.position
    return random.expovariate(weight), candidate.position
