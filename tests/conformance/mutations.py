"""The ways to take one patch out of a target's plan: out of what is done to requests, and to answers."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Final

from adapters.adapter import Adapter
from adapters.endpoint_patches import EndpointPatches
from adapters.message_facts import MessageFacts
from adapters.message_patches import MessagePatches
from adapters.patches import InTurn
from adapters.repair.finish import FinishReasons
from adapters.types import Operation
from adapters.vocabulary import MessageRule

_NO_CHANGE: Final[Mapping[str, Any]] = {
    "developer_to_system": False, "functions": True, "single_system": False, "system_to_user": False, "names": True,
    "prefix_names": False, "parts": frozenset(), "text_roles": frozenset(), "reasoning_known": False,
    "reasoning_as_tags": False, "null_content": True, "cache_control": True, "nested": False, "ids": None,
    "always": False,
}  # fmt: skip
"""Facts about messages with which nothing is done about them."""
_NO_RULE: Final[Mapping[str, Any]] = {
    "opened": False, "tags": {}, "usage_path": ("", ""), "error_path": ("", ""), "calls_in_content": False,
}  # fmt: skip
"""Facts about answers with which they stay as they are."""

Change = Callable[[Adapter], None]


@dataclass(frozen=True, slots=True)
class Mutation:
    """A plan without one of its patches."""

    name: str
    about: str
    """The parameter the patch is about, or the part of answers."""
    change: Change
    """Takes the patch out of an adapter that was made for such a target."""
    what: str = ""
    """The patch in words: targets that have it in common have this in common."""

    @property
    def kind(self) -> str:
        """The class of patch it is of, whatever the parameter."""
        head, _, tail = self.name.partition(": ")
        return tail.rpartition(" ")[0] if tail[-1:].isdigit() and head != "shape" else self.name.rstrip(" 0123456789")


def mutations(adapter: Adapter) -> Iterator[Mutation]:
    """Every patch of *adapter*, taken out."""
    yield from _of_parameters(adapter)
    yield from _of_shapes(adapter)
    yield from _of_messages(adapter)
    yield from _of_the_rest(adapter)
    yield from _of_endpoints(adapter)
    yield from _of_answers(adapter)


def _of_parameters(adapter: Adapter) -> Iterator[Mutation]:
    for param, patch in adapter.rules.patches.items():
        for number, part in enumerate(patch.patches if isinstance(patch, InTurn) else (patch,)):
            inner = type(getattr(part, "patch", None)).__name__ if type(part).__name__ == "_Where" else ""
            name = f"{param}: {type(part).__name__}{inner} {number}"
            yield Mutation(name, param, _without_patch(param, number), _words(part))


def _words(patch: Any) -> str:
    """What tells one patch from another, down to the conditions that functions were made from."""
    if is_dataclass(patch):
        members = (f"{one.name}={_words(getattr(patch, one.name))}" for one in fields(patch))
        return f"{type(patch).__name__}({', '.join(members)})"
    if isinstance(patch, list | tuple):
        return f"[{', '.join(map(_words, patch))}]"
    if callable(patch):
        ours = getattr(patch, "__module__", "").startswith("adapters.")
        inside = [cell.cell_contents for cell in getattr(patch, "__closure__", None) or () if ours]
        return f"{getattr(patch, '__name__', type(patch).__name__)}{_words(inside)}"
    return repr(patch)


def _without_patch(param: str, number: int) -> Change:
    def change(adapter: Adapter) -> None:
        patch = adapter.rules.patches[param]
        parts = patch.patches if isinstance(patch, InTurn) else (patch,)
        rest = (*parts[:number], *parts[number + 1 :])
        patches = {name: other for name, other in adapter.rules.patches.items() if name != param or rest}
        if rest:
            patches[param] = rest[0] if len(rest) == 1 else InTurn(param, rest)
        adapter.rules.patches = patches

    return change


def _of_shapes(adapter: Adapter) -> Iterator[Mutation]:
    for number, shape in enumerate(adapter.rules.shapes):
        name = f"shape: {type(shape).__name__} {number}"
        yield Mutation(name, shape.param, _without_shape(number), _words(shape))
    shapes = {id(shape) for shape in adapter.rules.shapes}
    for number, rescue in enumerate(adapter.rules.rescues):
        if id(rescue) not in shapes:
            yield Mutation(f"rescue: {type(rescue).__name__}", "tools", _without_rescue(number))


def _without_shape(number: int) -> Change:
    def change(adapter: Adapter) -> None:
        gone: Any = adapter.rules.shapes[number]
        adapter.rules.shapes = tuple(other for other in adapter.rules.shapes if other is not gone)
        adapter.rules.rescues = tuple(other for other in adapter.rules.rescues if other is not gone)

    return change


def _without_rescue(number: int) -> Change:
    def change(adapter: Adapter) -> None:
        adapter.rules.rescues = (*adapter.rules.rescues[:number], *adapter.rules.rescues[number + 1 :])

    return change


def _of_messages(adapter: Adapter) -> Iterator[Mutation]:
    facts = _facts(adapter)
    assert {one.name for one in fields(facts)} >= _NO_CHANGE.keys()
    for name, nothing in _NO_CHANGE.items():
        value = getattr(facts, name)
        if value != nothing:
            words = repr(sorted(value) if isinstance(value, frozenset) else value)
            yield Mutation(f"messages: {name}", "messages", _without_fact(name), words)
    for rule in sorted(facts.rules):
        yield Mutation(f"messages: {rule}", "messages", _without_rule(rule))


def _facts(adapter: Adapter) -> MessageFacts:
    return adapter.rules.messages._facts


def _without_fact(name: str) -> Change:
    def change(adapter: Adapter) -> None:
        adapter.rules.messages = MessagePatches(replace(_facts(adapter), **{name: _NO_CHANGE[name]}))

    return change


def _without_rule(rule: MessageRule) -> Change:
    def change(adapter: Adapter) -> None:
        facts = _facts(adapter)
        adapter.rules.messages = MessagePatches(replace(facts, rules=facts.rules - {rule}))

    return change


def _of_the_rest(adapter: Adapter) -> Iterator[Mutation]:
    if adapter.rules.allow is not None:
        yield Mutation("allow-list", "", _set_rule("allow", lambda: None))
    for name, _ in adapter.rules.defaults:
        yield Mutation(f"default: {name}", name, _without_default(name))
    if adapter.rules.limit is not None:
        yield Mutation("limit", "max_tokens", _set_rule("limit", lambda: None))
    if adapter.rules.quirk is not None:
        yield Mutation("quirk", "", _set_rule("quirk", lambda: None))
    if adapter.rules.counts_first:
        yield Mutation("counting", "messages", _set_rule("counts_first", lambda: False))
    asks, streams = adapter.rules.ask_for_usage, adapter.target.spec.params.get("stream")
    if streams is None or streams.held_by(adapter.target.spec.canonical(adapter.target.model)):
        yield Mutation(
            f"usage: {'asked for' if asks else 'not asked for'}", "usage", _set_rule("ask_for_usage", lambda: not asks)
        )
    if adapter.rules.progress_param is not None:
        yield Mutation("progress: asked for", "progress", _set_rule("progress_param", lambda: None))


def _without_default(name: str) -> Change:
    def change(adapter: Adapter) -> None:
        adapter.rules.defaults = [pair for pair in adapter.rules.defaults if pair[0] != name]
        adapter.rules.text_defaults = [pair for pair in adapter.rules.text_defaults if pair[0] != name]

    return change


def _of_endpoints(adapter: Adapter) -> Iterator[Mutation]:
    for operation, patches in adapter.rules.endpoints.items():
        for name in sorted(patches._lacks):
            change = _endpoint(operation, "_lacks", patches._lacks - {name})
            yield Mutation(f"{operation.value}: {name}", operation.value, change)
        for attribute in ("_one_prompt", "_unsure_dimensions", "_one_encoding"):
            if getattr(patches, attribute):
                yield Mutation(
                    f"{operation.value}: {attribute}", operation.value, _endpoint(operation, attribute, False)
                )


def _endpoint(operation: Operation, attribute: str, value: Any) -> Change:
    def change(adapter: Adapter) -> None:
        patches: EndpointPatches = copy.copy(adapter.rules.endpoints[operation])
        setattr(patches, attribute, value)
        adapter.rules.endpoints = {**adapter.rules.endpoints, operation: patches}

    return change


def _of_answers(adapter: Adapter) -> Iterator[Mutation]:
    rules = adapter.repair._rules
    for name, nothing in _NO_RULE.items():
        if getattr(rules, name) != nothing:
            yield Mutation(f"answers: {name}", "answers", _rule(name, nothing))
    for name in rules.reasoning_members:
        others = tuple(other for other in rules.reasoning_members if other != name)
        yield Mutation(f"answers: reasoning in {name}", "answers", _rule("reasoning_members", others))
    for name in sorted(rules.private):
        yield Mutation(f"answers: private {name}", "answers", _rule("private", rules.private - {name}))
    for marker in rules.markers:
        left = tuple(other for other in rules.markers if other != marker)
        yield Mutation(f"answers: marker {marker.decode()}", "answers", _rule("markers", left))
    said, general = adapter.target.spec.finish_reason.nonstandard, FinishReasons({})
    for word in said:
        if rules.finish.read(word) != general.read(word):
            rest = {other: meaning for other, meaning in said.items() if other != word}
            yield Mutation(f"answers: {word}", "answers", _rule("finish", FinishReasons(rest, rules.finish.missing)))
    if rules.finish.missing is not None:
        yield Mutation("answers: no reason", "answers", _rule("finish", FinishReasons(said)))
    if adapter.usage_per_choice:
        yield Mutation("answers: usage of each choice", "answers", _set("usage_per_choice", lambda: False))
    if adapter.progress is not None:
        yield Mutation("answers: progress", "answers", _set("progress", lambda: None))


def _rule(name: str, value: Any) -> Change:
    def change(adapter: Adapter) -> None:
        adapter.repair = copy.copy(adapter.repair)
        adapter.repair._rules = copy.copy(adapter.repair._rules)
        setattr(adapter.repair._rules, name, value)

    return change


def _set(attribute: str, make: Callable[[], Any]) -> Change:
    def change(adapter: Adapter) -> None:
        setattr(adapter, attribute, make())

    return change


def _set_rule(attribute: str, make: Callable[[], Any]) -> Change:
    def change(adapter: Adapter) -> None:
        setattr(adapter.rules, attribute, make())

    return change
