"""The ways to take one patch out of a target's plan."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from adapters.adapter import Adapter
from adapters.message_facts import MessageFacts, message_facts
from adapters.message_patches import MessagePatches
from adapters.patches import InTurn, LeaveOut
from adapters.types import Operation

_CHAT: Final = Operation.CHAT

_NO_CHANGE: Final[dict[str, Any]] = {
    "developer_to_system": False, "functions": True, "single_system": False, "system_to_user": False, "names": True,
    "prefix_names": False, "parts": frozenset(), "text_roles": frozenset(), "reasoning_known": False, "nulls": True,
    "empty_calls": True, "cache_control": True, "nested": False, "ids": None,
}  # fmt: skip
"""Facts about messages with which nothing is done about them."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """A plan without one of its patches."""

    name: str
    about: str
    """The parameter the patch is about, as far as there is one."""
    apply: Callable[[Adapter], Adapter]


def mutations(adapter: Adapter) -> Iterator[Mutation]:
    """Every patch of *adapter*, taken out."""
    for param, patch in adapter._patches.items():
        parts = patch.patches if isinstance(patch, InTurn) else (patch,)
        for number, part in enumerate(parts):
            if (
                isinstance(part, LeaveOut)
                and adapter._allow is not None
                and param not in adapter._allow._allowed[_CHAT]
            ):
                continue  # the allow-list does the same
            rest = (*parts[:number], *parts[number + 1 :])
            name = f"{param}: {type(part).__name__}"
            yield Mutation(name, param, _set("_patches", _without(adapter, param, rest)))
    for shape in adapter._shapes:
        others = tuple(other for other in adapter._shapes if other is not shape)
        yield Mutation(f"shape: {type(shape).__name__}", shape.param, _set("_shapes", others))
    if adapter._allow is not None:
        yield Mutation("allow-list", "", _set("_allow", None))
    for default in adapter._defaults:
        left = [other for other in adapter._defaults if other is not default]
        yield Mutation(f"default: {default[0]}", default[0], _set("_defaults", left))
    if adapter._limit is not None:
        yield Mutation("limit", "max_tokens", _set("_limit", None))
    if adapter._quirk is not None:
        yield Mutation("quirk", "", _set("_quirk", None))
    target = adapter.target
    facts = message_facts(target.spec, target.provider, target.spec.canonical(target.model))
    for name, changed in _message_facts(facts):
        yield Mutation(f"messages: {name}", "messages", _set("_messages", MessagePatches(changed)))


def _without(adapter: Adapter, param: str, rest: tuple[Any, ...]) -> dict[str, Any]:
    patches = dict(adapter._patches)
    if rest:
        patches[param] = rest[0] if len(rest) == 1 else InTurn(param, rest)
    else:
        del patches[param]
    return patches


def _set(attribute: str, value: Any) -> Callable[[Adapter], Adapter]:
    def apply(adapter: Adapter) -> Adapter:
        mutated = copy.copy(adapter)
        setattr(mutated, attribute, value)
        return mutated

    return apply


def _message_facts(facts: MessageFacts) -> Iterator[tuple[str, MessageFacts]]:
    known = {one.name for one in fields(facts)}
    for name, nothing in _NO_CHANGE.items():
        if name in known and getattr(facts, name) != nothing:
            yield name, replace(facts, **{name: nothing})
    for rule in sorted(facts.rules):
        yield rule, replace(facts, rules=facts.rules - {rule})
