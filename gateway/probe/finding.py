"""What came of looking at one fact of a provider file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    HOLDS = "holds"
    DIFFERS = "differs"
    NOT_SETTLED = "not settled"


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact: what the file says, what was seen, and which of the two to believe."""

    fact: str
    """Where it stands in the file, dotted, such as ``params.n``."""
    says: str
    seen: str
    verdict: Verdict
    contested: bool = False
    """The file's sources disagree on it, or nobody has verified it."""
    why: str = ""
    """What stands in the way, where it is not settled."""
    override: Mapping[str, Any] = field(default_factory=dict)
    """Laid over the file's facts, it makes them say what was seen; empty unless the two differ."""


def holds(fact: str, says: str, seen: str, contested: bool = False) -> Finding:
    return Finding(fact, says, seen, Verdict.HOLDS, contested)


def differs(fact: str, says: str, seen: str, override: Mapping[str, Any], contested: bool = False) -> Finding:
    return Finding(fact, says, seen, Verdict.DIFFERS, contested, override=override)


def not_settled(fact: str, says: str, why: str, contested: bool = False) -> Finding:
    return Finding(fact, says, "", Verdict.NOT_SETTLED, contested, why)
