"""The values of parameters: are the bounds and the words of the file the provider's own?"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Final

from adapters.spec import ParamSpec, Support
from adapters.vocabulary import Form
from gateway.probe.finding import Finding, differs, holds, not_settled
from gateway.probe.parameters import use_of
from gateway.probe.samples import CALL, OK, ROOM, TOOL, Fragment, named
from gateway.probe.seen import Seen
from gateway.probe.session import Session, is_contested

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
_EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_TIERS: Final = ("auto", "default", "flex", "priority")
_CHOICES: Final = ("auto", "none", "required", "named")
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
        if name in _FORMS and name not in session.plain_forms:
            yield await _form(session, name, rule)
        if name in ("reasoning_effort", "service_tier"):
            yield await _words(session, name, rule)
    choice = session.param("tool_choice")
    wanted = session.wants("params.tool_choice")
    if choice is not None and wanted and session.acts_on("tools") and session.outcomes.get("tool_choice"):
        yield await _choices(session, choice)


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
    entry = _dumped(rule)
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
    entry = _dumped(rule)
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


_FORMS: Final[Mapping[str, tuple[Form, Any]]] = {
    "stop": (Form.ARRAY, "gamma"),
    "logprobs": (Form.COUNT, True),
}
"""The form a provider may insist on, and a value that OpenAI takes and it then does not."""


async def _form(session: Session, name: str, rule: ParamSpec) -> Finding:
    form, value = _FORMS[name]
    insists = rule.form is form
    fact = f"params.{name}.form"
    says = f"only as {form.value}" if insists else "as OpenAI takes it"
    if not insists and name == "logprobs":
        return holds(fact, says, "taken")  # that is how it was sent
    seen = await session.chat({name: value})
    if not (seen.taken or seen.refused):
        return not_settled(fact, says, f"{seen.words}: {seen.complaint()}")
    if seen.refused is insists:
        return holds(fact, says, seen.words)
    entry = _dumped(rule) | {"support": "renamed" if not insists else rule.support.value, "form": form.value}
    if insists:
        del entry["form"]
        entry["support"] = "limited" if rule.max_items else "native"
    elif rule.max_items:
        entry["support"] = "limited"
    return differs(fact, says, seen.words, {"params": {name: entry}})


async def _words(session: Session, name: str, rule: ParamSpec) -> Finding:
    """Parameters of one word, where the file lists the words that are taken."""
    fact, contested = f"params.{name}.values", is_contested(rule)
    known = rule.values_for(session.canonical)
    candidates = dict.fromkeys((*(_EFFORTS if name == "reasoning_effort" else _TIERS), *known))
    says = ", ".join(known) or "any word"
    tells = rule.status is not None or session.strict
    taken: list[str] = []
    refusal: Seen | None = None
    for word in candidates if known else ("low",):
        seen = await session.chat({name: word})
        if not (seen.taken or seen.refused):
            return not_settled(fact, says, f"{seen.words}: {seen.complaint()}", contested)
        if seen.taken:
            taken.append(word)
        else:
            refusal = seen
    told = ", ".join(taken) or "none"
    wrong = [word for word in known if word not in taken]
    # Where a wrong word is not refused, taking it means nothing.
    more = [word for word in taken if known and word not in known] if tells else []
    if not wrong and not more:
        return holds(fact, says, told, contested)
    where: dict[str, Any] = {"by_model": {session.canonical: taken}} if rule.by_model else {"values": taken}
    if rule.status is None and refusal is not None and not session.strict:
        where["status"] = refusal.status
    return differs(fact, says, told, {"params": {name: where}}, contested)


async def _choices(session: Session, rule: ParamSpec) -> Finding:
    """The words of ``tool_choice``, each by what it makes of a prompt that suggests the opposite."""
    fact, contested = "params.tool_choice.values", is_contested(rule)
    known = rule.values_for(session.canonical)
    tried: list[str] = []
    works: list[str] = []
    calls_by_itself = called = refused = False
    for word in _CHOICES:
        fragment: Fragment = {"tools": [TOOL], "tool_choice": named() if word == "named" else word}
        if session.in_conflict(fragment):
            continue  # refused for another reason than the word
        seen = await session.chat(fragment, CALL if word in ("none", "auto") else OK, ROOM)
        if not (seen.taken or seen.refused):
            return not_settled(fact, ", ".join(known), f"{seen.words}: {seen.complaint()}", contested)
        called = called or bool(seen.calls)
        if word == "auto":
            calls_by_itself = bool(seen.calls)
        if seen.taken and not _tells(word, seen, calls_by_itself):
            continue
        tried.append(word)
        refused = refused or seen.refused
        if seen.taken and (word == "auto" or bool(seen.calls) is (word != "none")):
            works.append(word)
    # What is ignored leaves the model its own choice.
    meant = [word for word in tried if not known or word in known] if rule.support is not Support.IGNORED else ["auto"]
    says, told = ", ".join(meant), ", ".join(works) or "none of them"
    if not called and (len(tried) == 1 or not refused):
        return not_settled(fact, says, "the model makes no calls", contested)
    if works == meant:
        return holds(fact, says, told, contested)
    if rule.support is Support.IGNORED:
        where: dict[str, Any] = {"support": "native", "values": works}
    else:
        where = {"by_model": {session.canonical: works}} if rule.by_model else {"values": works}
    return differs(fact, says, told, {"params": {"tool_choice": {"patch": "emulate_forced_tool", **where}}}, contested)


def _tells(word: str, seen: Seen, calls_by_itself: bool) -> bool:
    """Whether an answer shows what the word did: not when it may only not have come to a call yet."""
    if word == "none":
        return calls_by_itself
    return word == "auto" or bool(seen.calls) or not seen.cut_off


def _dumped(rule: ParamSpec) -> dict[str, Any]:
    """The file's entry without what only explains it."""
    entry = rule.model_dump(mode="json", exclude_unset=True)
    for key in ("src", "conf", "note", "facts"):
        entry.pop(key, None)
    return entry
