"""The values of parameters: are the bounds and the words of the file the provider's own?"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Final

from adapters.spec import ParamSpec, Support
from adapters.vocabulary import Form
from gateway.probe.finding import Finding, differs, holds, not_settled
from gateway.probe.parameters import use_of
from gateway.probe.samples import Fragment
from gateway.probe.seen import Seen
from gateway.probe.session import Session, is_contested
from gateway.probe.words import FORMS, entry_of, settle_choices, settle_form, settle_words

_GRIDS: Final[Mapping[str, tuple[tuple[float, ...], float, float, float]]] = {
    # Values to try, the one that is in any range, and OpenAI's own bounds.
    "frequency_penalty": ((-3, -2, -1, 0.5, 1, 2, 3), 0.5, -2, 2),
    "presence_penalty": ((-3, -2, -1, 0.5, 1, 2, 3), 0.5, -2, 2),
    "seed": ((-1, 7), 7, -1, 7),
    "temperature": ((-1, 0, 0.5, 1, 1.5, 2, 3), 0.5, 0, 2),
    "top_logprobs": ((1, 3, 5, 8, 11, 20, 30), 1, 1, 20),
    "top_p": ((-1, 0, 0.1, 0.9, 1, 2), 0.9, 0.1, 1),
}
_STOPS: Final = (1, 2, 3, 4, 5, 8, 16)
_OPENAI_STOPS: Final = 4
_MOST_TOOLS: Final = 200


async def values(session: Session) -> AsyncIterator[Finding]:
    """Findings on bounds, forms and words; only of parameters that are taken at all."""
    for name, rule in session.spec.params.items():
        if not session.wants(f"params.{name}") or not session.acts_on(name) or not session.expected(name, rule):
            continue
        if rule.support is Support.RENAMED and rule.to not in (None, name):
            continue
        if name in _GRIDS:
            for up in (False, True):
                yield await _edge(session, name, rule, up=up)
        elif name == "stop":
            yield await _stop_items(session, rule)
        elif name == "tools" and rule.max is not None and rule.max < _MOST_TOOLS:
            yield await _tool_count(session, rule)
        if name in FORMS and name not in session.plain_forms:
            yield await settle_form(session, name, rule)
        if name in ("reasoning_effort", "service_tier"):
            yield await settle_words(session, name, rule)
    choice = session.param("tool_choice")
    wanted = session.wants("params.tool_choice")
    if choice is not None and wanted and session.acts_on("tools") and session.outcomes.get("tool_choice"):
        yield await settle_choices(session, choice)


def _allows(rule: ParamSpec, value: float) -> bool:
    below = (rule.min is not None and value < rule.min) or (
        rule.min_exclusive is not None and value <= rule.min_exclusive
    )
    above = (rule.max is not None and value > rule.max) or (
        rule.max_exclusive is not None and value >= rule.max_exclusive
    )
    return not (below or above or value in rule.omit or (rule.form is Form.UNSIGNED and value < 0))


async def _edge(session: Session, name: str, rule: ParamSpec, *, up: bool) -> Finding:
    """Where a number's range ends on one side."""
    grid, middle, least, most = _GRIDS[name]
    side = sorted((value for value in grid if (value > middle if up else value < middle)), reverse=not up)
    bound = (rule.max, rule.max_exclusive) if up else (rule.min, rule.min_exclusive)
    bounded = any(one is not None for one in bound) or bool(rule.omit and up)
    bounded = bounded or (not up and rule.form is Form.UNSIGNED)
    allowed = [value for value in side if _allows(rule, value) and (bounded or least <= value <= most)]
    beyond = [value for value in side if not _allows(rule, value)] if bounded else []
    fact = f"params.{name}.{'max' if up else 'min'}"
    says = f"up to {allowed[-1]:g}" if allowed and up else f"from {allowed[-1]:g}" if allowed else "no further"
    if bounded and not beyond:
        says += ", perhaps further"

    async def takes(value: float) -> Seen:
        fragment: Fragment = {name: value}
        if name == "top_logprobs":
            fragment["logprobs"] = use_of(session, "logprobs", session.param("logprobs"))["logprobs"]
        return await session.chat(fragment)

    best, seen = await _last_taken(takes, allowed, beyond)
    if seen is not None and not (seen.taken or seen.refused):
        return not_settled(fact, says, f"{seen.words}: {seen.complaint()}", is_contested(rule))
    wanted = allowed[-1] if allowed else middle
    got = middle if best is None else best
    told = f"{'up to' if up else 'from'} {got:g}"
    if got == wanted:
        return holds(fact, says, told, is_contested(rule))
    entry = entry_of(rule)
    for key in ("max", "max_exclusive", "omit") if up else ("min", "min_exclusive", "form"):
        entry.pop(key, None)
    if got != side[-1]:
        entry["max" if up else "min"] = got
    limited = any(key.startswith(("min", "max")) for key in entry)
    entry["support"] = "limited" if limited else "native" if rule.support is Support.LIMITED else rule.support.value
    return differs(fact, says, told, {"params": {name: entry}}, is_contested(rule))


async def _last_taken(
    takes: Callable[[Any], Any], allowed: Sequence[Any], beyond: Sequence[Any]
) -> tuple[Any | None, Seen | None]:
    """The last value that is taken, walking away from the two that the file puts the border between."""
    seen: Seen | None = None
    if allowed:
        seen = await takes(allowed[-1])
        if not seen.taken:
            for value in reversed(allowed[:-1]):
                if not seen.refused:
                    return None, seen
                seen = await takes(value)
                if seen.taken:
                    return value, seen
            return None, seen
    best = allowed[-1] if allowed else None
    for value in beyond:
        seen = await takes(value)
        if not seen.taken:
            return best, seen
        best = value
    return best, seen


async def _stop_items(session: Session, rule: ParamSpec) -> Finding:
    most = rule.max_items
    allowed = [count for count in _STOPS if count <= (most if most is not None else _OPENAI_STOPS)]
    beyond = [count for count in _STOPS if most is not None and count > most]
    fact, says = "params.stop.max_items", f"up to {allowed[-1]}"

    async def takes(count: int) -> Seen:
        return await session.chat({"stop": [f"zz{number}" for number in range(count)]})

    best, seen = await _last_taken(takes, allowed, beyond)
    if seen is not None and not (seen.taken or seen.refused):
        return not_settled(fact, says, f"{seen.words}: {seen.complaint()}", is_contested(rule))
    if best == allowed[-1]:
        return holds(fact, says, f"up to {best}", is_contested(rule))
    entry = entry_of(rule)
    entry.pop("max_items", None)
    if best != _STOPS[-1]:
        entry |= {"support": "limited", "max_items": best or 1, "patch": "client_side_stop"}
    else:
        entry |= {"support": "limited" if "form" in entry else "native"}
        entry.pop("patch", None)
    return differs(fact, says, f"up to {best or 0}", {"params": {"stop": entry}}, is_contested(rule))


async def _tool_count(session: Session, rule: ParamSpec) -> Finding:
    count = int(rule.max or 0) + 1
    tools = [{"type": "function", "function": {"name": f"t{number}"}} for number in range(count)]
    seen = await session.chat({"tools": tools})
    fact, says = "params.tools.max", f"up to {rule.max:g}"
    if not (seen.taken or seen.refused):
        return not_settled(fact, says, f"{seen.words}: {seen.complaint()}")
    if seen.refused:
        return holds(fact, says, f"{count} are {seen.words}")
    return differs(fact, says, f"{count} are taken", {"params": {"tools": {"max": None}}})
