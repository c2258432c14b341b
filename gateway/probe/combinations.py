"""Combinations: those the file says are refused, and those that OpenAI takes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any, Final

from adapters.spec import Condition, ConditionKind, ConflictSpec
from adapters.spec_parts import is_one_of
from gateway.probe.finding import Finding, differs, holds, not_settled
from gateway.probe.parameters import use_of
from gateway.probe.samples import ROOM, TOOL, USES, Fragment, named, schema_format
from gateway.probe.session import Session

_REFUSED: Final = ("documented_unsupported", "unsupported_together")
_COMMON: Final[tuple[tuple[str, ...], ...]] = (
    ("tools", "response_format.json_object"),
    ("tools", "response_format.json_schema"),
    ("stream", "response_format.json_schema"),
    ("stream", "tools"),
    ("stream", "n"),
    ("stream", "logprobs"),
)
_PATCHES: Final = {"tools": "two_phase", "stream": "fake_stream"}
_VALUES: Final[dict[str, Any]] = {"true": True, "false": False, "null": None, "named": named(), "forced": "required"}
_EXAMPLES: Final[Fragment] = {
    "include_reasoning": True,
    "prompt_logprobs": 1,
    "reasoning_format": "parsed",
    "safe_tokenization": True,
    "structured_outputs": {"choice": ["ok"]},
    "thinking": {"type": "enabled", "budget_tokens": 1024},
}


async def combinations(session: Session) -> AsyncIterator[Finding]:
    """One finding a combination."""
    for conflict in session.spec.conflicts:
        yield await _listed(session, conflict)
    for names in _COMMON:
        if all(session.outcomes.get(name) for name in names):
            finding = await _unlisted(session, names)
            if finding is not None:
                yield finding


async def _listed(session: Session, conflict: ConflictSpec) -> Finding:
    fact = f"conflicts: {' + '.join(conflict.when)}"
    may = conflict.only_after is not None
    refused = isinstance(conflict.result, int) or conflict.result in _REFUSED
    says = f"may be refused with {conflict.only_after}" if may else f"refused ({conflict.result})"
    contested = _is_contested(conflict)
    if not may and not refused:
        return not_settled(fact, str(conflict.result), "it shows in no answer", contested)
    body: Fragment = {}
    for condition in conflict.conditions:
        why = _add(session, body, condition)
        if why is not None:
            return not_settled(fact, says, why, contested)
    if alone := _refused_alone(session, conflict.conditions):
        return not_settled(fact, says, f"{alone} is refused by itself", contested)
    seen = await session.chat(body, room=ROOM)
    if not (seen.taken or seen.refused):
        return not_settled(fact, says, f"{seen.words}: {seen.complaint()}", contested)
    if may or seen.refused:
        return holds(fact, says, seen.words, contested)
    rest = [_dumped(one) for one in session.spec.conflicts if one is not conflict]
    return differs(fact, says, seen.words, {"conflicts": rest}, contested)


def _is_contested(conflict: ConflictSpec) -> bool:
    return conflict.conf == "contested" or conflict.only_after is not None


def _dumped(conflict: ConflictSpec) -> dict[str, Any]:
    return conflict.model_dump(mode="json", exclude_unset=True, exclude={"src", "conf", "note", "facts"})


def _add(session: Session, body: Fragment, condition: Condition) -> str | None:
    """Make *body* meet the condition; the reason where that cannot be done."""
    name, values = condition.param, condition.values
    match condition.kind:
        case ConditionKind.UNUSED:
            body.pop(name, None)
        case ConditionKind.MODEL:
            if not is_one_of(session.canonical, values):
                return f"it is about other models: {', '.join(values)}"
        case ConditionKind.IS:
            _put(body, name, _VALUES.get(values[0], values[0]))
            if name == "tool_choice":
                body.setdefault("tools", [TOOL])
        case ConditionKind.IS_NOT:
            pass
        case ConditionKind.OVER:
            body[name] = int(float(values[0])) + 1
        case ConditionKind.TEXT:
            _put(body, name, "true")
        case ConditionKind.USED:
            if name == "response_format":
                body[name] = {"type": "json_object"}
            elif name in USES:
                body |= {
                    **use_of(session, name, session.param(name)),
                    **({"max_tokens": 9} if name == "max_tokens" else {}),
                }
            elif name in _EXAMPLES:
                body.setdefault(name, _EXAMPLES[name])
            elif name == "stream_options":
                body[name] = {"include_usage": True}
            else:
                return f"no value of {name} is known that could be sent"
            if name == "tool_choice":
                body.pop("tools", None)
            if name == "top_logprobs":
                body.pop("logprobs", None)
    return None


def _put(body: Fragment, name: str, value: Any) -> None:
    head, _, tail = name.partition(".")
    body[head] = {tail: value} if tail else value


def _refused_alone(session: Session, conditions: Iterable[Condition]) -> str | None:
    """A part of the combination that is refused without the rest."""
    for condition in conditions:
        name = condition.param
        names = (name,) if name != "response_format" else ("response_format.json_object",)
        for one in names:
            if condition.kind in (ConditionKind.USED, ConditionKind.OVER) and session.outcomes.get(one) is False:
                return one
    return None


async def _unlisted(session: Session, names: tuple[str, ...]) -> Finding | None:
    """A combination that OpenAI takes, and of which the file says nothing."""
    body: Fragment = {}
    for name in names:
        body |= use_of(session, name, session.param(name))
    if "response_format.json_schema" in names:
        body["response_format"] = schema_format()
    if session.in_conflict(body):
        return None
    seen = await session.chat(body, room=ROOM)
    fact = f"conflicts: {' + '.join(names)}"
    if not (seen.taken or seen.refused):
        return not_settled(fact, "taken", f"{seen.words}: {seen.complaint()}")
    if seen.taken:
        return holds(fact, "taken", seen.words)
    added: dict[str, Any] = {"when": list(names), "result": seen.status}
    if patch := next((_PATCHES[name] for name in names if name in _PATCHES), None):
        added["patch"] = patch
    if names[-1] == "n":
        added["patch"] = "fan_out"
    return differs(fact, "taken", seen.words, {"conflicts": [*map(_dumped, session.spec.conflicts), added]})
