"""The words and forms of parameters: are those of the file the ones that the provider takes?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from adapters.spec import ParamSpec, Support
from adapters.vocabulary import Form
from gateway.probe.finding import Finding, differs, holds, not_settled
from gateway.probe.samples import CALL, OK, ROOM, TOOL, Fragment, named
from gateway.probe.seen import Seen
from gateway.probe.session import Session, is_contested

_EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_TIERS: Final = ("auto", "default", "flex", "priority")
_CHOICES: Final = ("auto", "none", "required", "named")

FORMS: Final[Mapping[str, tuple[Form, Any]]] = {
    "stop": (Form.ARRAY, "gamma"),
    "logprobs": (Form.COUNT, True),
}
"""The form a provider may insist on, and a value that OpenAI takes and it then does not."""


async def settle_form(session: Session, name: str, rule: ParamSpec) -> Finding:
    form, value = FORMS[name]
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
    entry = entry_of(rule) | {"support": "renamed" if not insists else rule.support.value, "form": form.value}
    if insists:
        del entry["form"]
        entry["support"] = "limited" if rule.max_items else "native"
    elif rule.max_items:
        entry["support"] = "limited"
    return differs(fact, says, seen.words, {"params": {name: entry}})


async def settle_words(session: Session, name: str, rule: ParamSpec) -> Finding:
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


async def settle_choices(session: Session, rule: ParamSpec) -> Finding:
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


def entry_of(rule: ParamSpec) -> dict[str, Any]:
    """The file's entry without what only explains it."""
    entry = rule.model_dump(mode="json", exclude_unset=True)
    for key in ("src", "conf", "note", "facts"):
        entry.pop(key, None)
    return entry
