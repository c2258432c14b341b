"""In the order in which the configuration lists them."""

from __future__ import annotations

from collections.abc import Sequence

from policies.base import Candidate, policy


@policy("priority", fixed=True)
def priority(candidates: Sequence[Candidate]) -> list[Candidate]:
    return sorted(candidates, key=lambda candidate: candidate.position)
