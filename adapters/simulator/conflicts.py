"""Combinations that a provider refuses: the conditions of ``conflicts`` in its file, asked of a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from adapters.simulator.facts import Body, in_use, value_of
from adapters.simulator.refusal import Refusals
from adapters.simulator.served import Served
from adapters.spec import Condition, ConditionKind, ConflictSpec, ProviderSpec
from adapters.spec_parts import is_one_of

_REFUSED: Final = ("documented_unsupported", "unsupported_together")
_DEFAULTS: Final[Mapping[str, Any]] = {"temperature": 1, "top_p": 1}
"""Values that hold anyway: who refuses the parameter takes these all the same."""
_LITERALS: Final[Mapping[str, Any]] = {"false": False, "null": None, "true": True}


class Conflicts:
    """The combinations one provider refuses."""

    def __init__(self, spec: ProviderSpec, refusals: Refusals) -> None:
        self._refusals = refusals
        self._conflicts = [(conflict, conflict.conditions) for conflict in spec.conflicts if _is_refused(conflict)]

    def check(self, body: Body, served: Served) -> None:
        """Raise the `RefusedError` of the first combination that applies."""
        for conflict, conditions in self._conflicts:
            if all(holds(condition, body, served) for condition in conditions):
                together = " and ".join(f"'{word}'" for word in conflict.when)
                raise self._refusals.invalid(
                    conflict.message_like or f"{together} cannot be used together",
                    conditions[0].param,
                    status=conflict.result if isinstance(conflict.result, int) else None,
                    code=conflict.code,
                )


def _is_refused(conflict: ConflictSpec) -> bool:
    """A combination that may well be taken, and is patched only after a refusal, is taken here."""
    return conflict.only_after is None and (isinstance(conflict.result, int) or conflict.result in _REFUSED)


def holds(condition: Condition, body: Body, served: Served) -> bool:
    """Whether *body* is as the condition says."""
    value = value_of(body, condition.param)
    match condition.kind:
        case ConditionKind.USED:
            return _used(condition.param, value)
        case ConditionKind.UNUSED:
            return not _used(condition.param, value)
        case ConditionKind.IS:
            return _is_any(value, condition.values)
        case ConditionKind.IS_NOT:
            return not _is_any(value, condition.values)
        case ConditionKind.OVER:
            return isinstance(value, (int, float)) and value > float(condition.values[0])
        case ConditionKind.TEXT:
            return isinstance(value, str)
        case ConditionKind.MODEL:
            return is_one_of(served.canonical, condition.values)


def _used(name: str, value: Any) -> bool:
    if name == "response_format":
        return isinstance(value, Mapping) and value.get("type") not in (None, "text")
    return in_use(name, value) and value != _DEFAULTS.get(name)


def _is_any(value: Any, words: tuple[str, ...]) -> bool:
    if isinstance(value, Mapping):
        return "named" in words  # the choice of one tool
    return any(value == _LITERALS.get(word, word) for word in words)
