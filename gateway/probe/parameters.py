"""Every parameter of the file: is a use of it taken, and does it have the effect it should?"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final

from adapters.spec import ParamSpec, Support
from adapters.vocabulary import EMULATIONS, Form
from gateway.probe.finding import Finding, differs, holds, not_settled
from gateway.probe.samples import COMPANIONS, PATCHES, PROMPTS, SMALL, USES, Fragment, named
from gateway.probe.seen import Seen
from gateway.probe.session import LIMIT_NAMES, Session, is_contested

# What nothing in an answer shows: taken and lost, or taken and honoured.
_INVISIBLE_CONTRACT: Final = frozenset({"logit_bias", "modalities", "web_search_options"})


async def parameters(session: Session) -> AsyncIterator[Finding]:
    """One finding a parameter."""
    known = session.spec.params
    # Beyond parameters, all of them may be needed to understand what is seen.
    some = bool(session.wanted) and all(name.startswith("params.") for name in session.wanted)
    wanted = {name for name in known if not some or session.wants(f"params.{name}")}
    wanted |= {COMPANIONS[name] for name in wanted if name in COMPANIONS}
    # Those that others need come first.
    for name in sorted(known, key=lambda name: (name in COMPANIONS, name)):
        if name in USES and name in wanted:
            yield await _parameter(session, name, known[name])


async def _parameter(session: Session, name: str, rule: ParamSpec) -> Finding:
    fact, contested = f"params.{name}", is_contested(rule)
    says = _says(rule)
    companion = COMPANIONS.get(name)
    fragment = use_of(session, name, rule)
    if companion is not None and companion not in fragment:
        needed = session.param(companion)
        if session.outcomes.get(companion, True):
            fragment |= use_of(session, companion, needed) if needed is not None else USES[companion]
        elif session.expected(name, rule) or (needed is not None and session.expected(companion, needed)):
            return not_settled(fact, says, f"it needs {companion}, which is refused", contested)
    expected = session.expected(name, rule) and not (name == "n" and rule.max is not None and rule.max < 2)
    expected = expected and not session.in_conflict(fragment)
    prompt, room = PROMPTS.get(name, ("", SMALL))
    seen = await session.chat(fragment, prompt, room)
    works = _effect(name, seen)
    meant = session.means(name)
    if seen.taken and expected and works is not None and works is not meant:
        # A model may do otherwise for once.
        seen = await session.chat(fragment, prompt, room)
        works = _effect(name, seen)
    if not (seen.taken or seen.refused):
        return not_settled(fact, says, f"{seen.words}: {seen.complaint()}", contested)
    if name == "tools" and seen.taken and not works:
        works = await _are_read(session, seen, prompt, room, works)
    session.outcomes[name] = seen.taken
    if works is False:
        session.lost.add(name)
    if seen.refused:
        if expected and name == "logprobs" and rule.form is Form.COUNT:
            as_openai = await session.chat(USES[name])
            if as_openai.taken:
                session.outcomes[name] = True
                session.plain_forms.add(name)
                return differs(fact, "only as count", "taken as OpenAI has it", _entry(name, rule, "native"), contested)
        if expected:
            return differs(fact, says, seen.words, _entry(name, rule, "rejected", status=seen.status), contested)
        if rule.status is not None and rule.status != seen.status:
            return differs(fact, f"{says} with {rule.status}", seen.words, _status(name, seen.status), contested)
        return holds(fact, says, seen.words, contested)
    told = "taken" if works is None else "taken, and has its effect" if works else "taken, without effect"
    if not expected:
        if works is None and name in _INVISIBLE_CONTRACT:
            if rule.support is Support.UNKNOWN:
                return not_settled(fact, says, "it is taken, but no answer shows whether it has an effect", contested)
            return differs(fact, says, told, _entry(name, rule, "ignored"), contested)
        return differs(fact, says, told, _entry(name, rule, "ignored" if works is False else "native"), contested)
    if works is None or works is meant:
        return holds(fact, says, told, contested)
    return differs(fact, says, told, _entry(name, rule, "native" if works else "ignored"), contested)


async def _are_read(session: Session, seen: Seen, prompt: str, room: int, works: bool | None) -> bool | None:
    """What an answer without a call says of its tools: a small model makes none, whether it was shown them or not.

    The tokens of the prompt tell which: with the tools it has to be longer than without. Where nobody counts them,
    *works*, which the answer alone has said.
    """
    bare = await session.chat({}, prompt, room)
    shown, alone = (one.usage.get("prompt_tokens") for one in (seen, bare))
    if not (isinstance(shown, int) and isinstance(alone, int) and bare.taken):
        return works
    return None if shown > alone else False


def use_of(session: Session, name: str, rule: ParamSpec | None) -> Fragment:
    """A use of the parameter in the form the file says is taken."""
    fragment = dict(USES[name])
    if rule is None:
        return fragment
    values = rule.values_for(session.canonical)
    if name == "logprobs" and rule.form is Form.COUNT and name not in session.plain_forms:
        return {"logprobs": 1}
    if name in ("service_tier", "reasoning_effort") and values and fragment[name] not in values:
        return {name: values[0]}
    if name == "tool_choice":
        word = values[0] if values and "auto" not in values else "auto"
        return {"tool_choice": named() if word == "named" else word}
    return fragment


def _says(rule: ParamSpec) -> str:
    text = rule.support.value
    if rule.to is not None:
        text += f" to {rule.to}"
    bounds = {"min": rule.min, "max": rule.max, "max_items": rule.max_items}
    told = [f"{name} {value:g}" for name, value in bounds.items() if value is not None]
    return f"{text} ({', '.join(told)})" if told else text


def _entry(name: str, rule: ParamSpec, support: str, status: int | None = None) -> dict[str, Any]:
    entry: dict[str, Any] = {"support": support}
    if status is not None:
        entry["status"] = status
    if support != "native":
        patch = rule.patch.value if rule.patch in EMULATIONS and rule.patch is not None else PATCHES.get(name, "strip")
        if name not in LIMIT_NAMES:
            entry["patch"] = patch
    return {"params": {name: entry}}


def _status(name: str, status: int) -> dict[str, Any]:
    return {"params": {name: {"status": status}}}


def _effect(name: str, seen: Seen) -> bool | None:
    """Whether the answer shows the parameter's effect; None where it cannot."""
    look = _EFFECTS.get(name)
    return look(seen) if look is not None and seen.taken else None


def _cut_short(seen: Seen) -> bool | None:
    if seen.cut_off:
        return True
    return None if not seen.text else len(seen.text.split()) <= 4


def _stopped(seen: Seen) -> bool | None:
    if "gamma" in seen.text:
        return False
    return True if "alpha" in seen.text else None


def _called(seen: Seen) -> bool | None:
    if seen.calls:
        return True
    return None if seen.cut_off else False


def _one_call(seen: Seen) -> bool | None:
    return len(seen.calls) == 1 if seen.calls else None


def _in_json(key: str | None) -> Callable[[Seen], bool | None]:
    def look(seen: Seen) -> bool | None:
        if seen.cut_off or not seen.text:
            return None
        # Models that think aloud in their content do it before the JSON.
        text = seen.text.rpartition("</think>")[2]
        try:
            found = json.loads(text)
        except ValueError:
            return False
        return isinstance(found, Mapping) and (key is None or key in found)

    return look


_EFFECTS: Final[Mapping[str, Callable[[Seen], bool | None]]] = {
    "logprobs": lambda seen: any(choice.get("logprobs") for choice in seen.choices),
    "max_completion_tokens": _cut_short,
    "max_tokens": _cut_short,
    "n": lambda seen: len(seen.choices) == 2,
    "parallel_tool_calls": _one_call,
    "response_format.json_object": _in_json(None),
    "response_format.json_schema": _in_json("answer"),
    "stop": _stopped,
    "stream": lambda seen: seen.streamed,
    "tools": _called,
}
