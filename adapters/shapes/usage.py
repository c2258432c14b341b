"""The ``usage`` a client is told when its answer took several calls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

UsageFields = dict[str, Any]

_TOTAL: Final = ("prompt_tokens", "completion_tokens", "total_tokens")


def sum_of_calls(usage: UsageFields | None, further: UsageFields | None) -> UsageFields | None:
    """Two calls one after the other: everything was read and written, so everything counts."""
    if not usage or not further:
        return usage or further
    added = _added(usage, further)
    return {**further, **added}


def sum_of_choices(usages: Iterable[UsageFields | None]) -> UsageFields | None:
    """Calls that each give a choice of one answer: their common prompt is told once, what was generated adds up."""
    total: UsageFields | None = None
    for usage in usages:
        if not usage:
            continue
        if total is None:
            total = dict(usage)
            continue
        written = _added(total, usage)
        for name in ("completion_tokens", "completion_tokens_details"):
            if name in written:
                total[name] = written[name]
        total["prompt_tokens"] = max(_int(total.get("prompt_tokens")), _int(usage.get("prompt_tokens")))
        total["total_tokens"] = total["prompt_tokens"] + _int(total.get("completion_tokens"))
    return total


def _added(one: UsageFields, other: UsageFields) -> UsageFields:
    """The figures of both, added up; other members are left out."""
    total: UsageFields = {}
    for name in dict.fromkeys((*one, *other)):
        mine, theirs = one.get(name), other.get(name)
        if isinstance(mine, dict) or isinstance(theirs, dict):
            if name.endswith("_details"):
                total[name] = _added(*(figures if isinstance(figures, dict) else {} for figures in (mine, theirs)))
        elif name in _TOTAL or name.endswith("_tokens"):
            total[name] = _int(mine) + _int(theirs)
    return total


def _int(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
