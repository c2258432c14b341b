"""Patches for combinations a provider refuses, where one request that is a little different avoids them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from adapters.draft import Draft
from adapters.effort_patches import switch_off
from adapters.logprob_patches import SetLogprobs
from adapters.parameter_patches import raw
from adapters.patches import Patch, leave_out, unsupported
from adapters.shapes.conditions import Predicate, compile_conflict
from adapters.spec import ConflictSpec, ProviderSpec
from adapters.spec_conflicts import ConditionKind
from adapters.types import Action
from adapters.vocabulary import Patch as Word

_decode = msgspec.json.Decoder().decode

_REASONING_FORMAT: Final = "reasoning_format"
_BOOLEANS: Final[Mapping[Any, bool]] = {"true": True, "false": False}


def compile_conflicts(spec: ProviderSpec, provider: str, canonical: str) -> dict[str, list[Patch]]:
    """The patches for the conflicts of *spec*, by the parameter without which there is none."""
    compiled: dict[str, list[Patch]] = {}
    for conflict in spec.conflicts:
        if conflict.only_after is not None:
            continue  # a shape waits for the refusal
        made = _compile(conflict, spec, provider, canonical)
        if made is not None:
            compiled.setdefault(_trigger(conflict), []).append(made)
    return compiled


def _trigger(conflict: ConflictSpec) -> str:
    needed = (ConditionKind.USED, ConditionKind.IS, ConditionKind.OVER, ConditionKind.TEXT)
    names = [one.param.partition(".")[0] for one in conflict.conditions if one.kind in needed]
    return next(iter(names), "")


def _compile(conflict: ConflictSpec, spec: ProviderSpec, provider: str, canonical: str) -> Patch | None:
    holds = compile_conflict(conflict, canonical)
    if holds is None:
        return None
    first = conflict.conditions[0].param
    made: Patch
    match conflict.patch:
        case Word.DROP_FIRST | Word.STRIP:
            made = _LeaveOut(first, provider)
        case Word.ERROR:
            made = _Refuse(first, provider)
        case Word.SET_LOGPROBS if _has_alternatives(spec, canonical):
            made = SetLogprobs()
        case Word.SEND_BOOLEAN:
            made = _AsBoolean(first)
        case Word.REASONING_PARSED:
            made = _parse_reasoning
        case Word.DISABLE_THINKING:
            made = _DisableThinking(first, provider, spec.reasoning.switch_for(canonical))
        case _:
            return None
    return _Where(holds, made)


def _has_alternatives(spec: ProviderSpec, canonical: str) -> bool:
    """Whether there is anything to set the flag for: a preset may lack what it inherits the conflict of."""
    found = (spec.params.get(name) for name in ("logprobs", "top_logprobs"))
    return all(facts is None or facts.held_by(canonical) for facts in found)


@dataclass(frozen=True, slots=True)
class _Where:
    holds: Predicate
    patch: Patch

    def __call__(self, draft: Draft) -> None:
        if self.holds(draft):
            self.patch(draft)


@dataclass(frozen=True, slots=True)
class _LeaveOut:
    param: str
    provider: str

    def __call__(self, draft: Draft) -> None:
        if self.param in draft.body:
            leave_out(draft, self.param, self.provider, "It does not go together with other parameters of the request.")


@dataclass(frozen=True, slots=True)
class _Refuse:
    param: str
    provider: str

    def __call__(self, draft: Draft) -> None:
        raise unsupported(self.param, self.provider, "It does not go together with other parameters of the request.")


@dataclass(frozen=True, slots=True)
class _AsBoolean:
    """``"true"`` and ``"false"`` in quotes become what they mean; *path* is a member of a parameter's object."""

    path: str

    def __call__(self, draft: Draft) -> None:
        param, _, member = self.path.partition(".")
        value = _decode(draft.body[param])
        given = value.get(member) if isinstance(value, dict) else None
        if isinstance(given, str) and given.lower() in _BOOLEANS:
            draft.body[param] = raw({**value, member: _BOOLEANS[given.lower()]})
            draft.adjusted(param, Action.REWRITTEN)


def _parse_reasoning(draft: Draft) -> None:
    draft.body[_REASONING_FORMAT] = raw("parsed")
    draft.adjusted(_REASONING_FORMAT, Action.MAPPED)


@dataclass(frozen=True, slots=True)
class _DisableThinking:
    """Switch thinking off, because what the client asks for does not go together with it."""

    param: str
    provider: str
    off: Mapping[str, Any]

    def __call__(self, draft: Draft) -> None:
        if not self.off:
            raise unsupported(self.param, self.provider, "Its model thinks, and then it does not go.")
        draft.body.pop("reasoning_effort", None)
        switch_off(draft, self.off)
        for name in self.off:
            draft.adjusted(name, Action.REWRITTEN)
