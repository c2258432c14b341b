"""Whether a request is one of the combinations that a provider file lists as conflicts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from adapters.draft import Draft
from adapters.shapes.bodies import is_used, value_of, wanted_format
from adapters.spec import Condition, ConditionKind, ConflictSpec

Predicate = Callable[[Draft], bool]

_FORMAT: Final = "response_format"


def compile_conflict(conflict: ConflictSpec, canonical: str) -> Predicate | None:
    """Whether a draft is in *conflict*; None where that is about other models than the one called *canonical*."""
    conditions: list[Condition] = []
    for condition in conflict.conditions:
        if condition.kind is not ConditionKind.MODEL:
            conditions.append(condition)
        elif not canonical.startswith(condition.values):
            return None

    def holds(draft: Draft) -> bool:
        return all(_holds(condition, draft) for condition in conditions)

    return holds


def _holds(condition: Condition, draft: Draft) -> bool:
    param = condition.param
    match condition.kind:
        case ConditionKind.USED:
            return _is_used(param, draft)
        case ConditionKind.UNUSED:
            return not _is_used(param, draft)
        case ConditionKind.IS:
            return _word(param, draft) in condition.values
        case ConditionKind.IS_NOT:
            return _word(param, draft) not in condition.values
        case ConditionKind.OVER:
            value = _value(param, draft)
            return isinstance(value, int | float) and value > float(condition.values[0])
        case ConditionKind.TEXT:
            return isinstance(_value(param, draft), str)
        case _:
            return True


def _is_used(param: str, draft: Draft) -> bool:
    if param == "stream":
        return draft.stream
    head, _, member = param.partition(".")
    if head == _FORMAT:
        wanted = wanted_format(draft.body)
        return bool(wanted) and member in ("", wanted)
    if not member:
        return is_used(draft.body, head)
    value = value_of(draft.body, head)
    return isinstance(value, dict) and value.get(member) not in (None, False)


def _word(param: str, draft: Draft) -> str:
    value = _value(param, draft)
    if param == "tool_choice" and isinstance(value, dict):
        return "named"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _value(param: str, draft: Draft) -> Any:
    """The value of a parameter, or of a member of one."""
    head, _, member = param.partition(".")
    value = value_of(draft.body, head)
    return value.get(member) if member and isinstance(value, dict) else None if member else value
