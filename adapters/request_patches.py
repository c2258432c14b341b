"""Compiles what a provider file says of parameters into the patches of one target.

A parameter that can go as it is compiles to nothing, so that a request pays only for those it carries and that need
something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from adapters.allow_list import FOREIGN, known_parameters
from adapters.conflict_patches import compile_conflicts
from adapters.effort_patches import Effort
from adapters.feature_patches import format_patches, logprob_patches, tool_patches
from adapters.format_patches import ResponseFormat
from adapters.limit_patches import DEFAULT_LIMIT, NEW_LIMIT, OLD_LIMIT, OutputLimit, SendLimit
from adapters.logprob_patches import AsCount
from adapters.parameter_patches import AsTool, AtMost, Clamp, FoldIntoUser, Omit, Stops, WithoutSign, Words
from adapters.patches import ADVISORY, CONTRACT, InTurn, LeaveOut, Patch, Rename
from adapters.spec import ParamSpec, ProviderSpec, Support
from adapters.spec_parts import is_one_of
from adapters.target_facts import Offers, TargetFacts
from adapters.tool_choice import ToolChoice
from adapters.tool_patches import FewerTools, NoTools, ToolsIfOffered
from adapters.vocabulary import Form
from adapters.vocabulary import Patch as Word

# What the gateway lets through: bounds that are no narrower need no patch.
_WIDEST: Final[Mapping[str, tuple[float, float]]] = {
    "temperature": (0, 2), "top_p": (0, 1), "frequency_penalty": (-2, 2), "presence_penalty": (-2, 2),
}  # fmt: skip
_OWN: Final = frozenset((
    OLD_LIMIT, NEW_LIMIT, "n", "stop", "logprobs", "top_logprobs", "tools", "tool_choice", "parallel_tool_calls",
    "reasoning_effort", "stream", "web_search_options",
))  # fmt: skip
"""Parameters that are compiled each in its own way."""
_FIRST: Final = ("web_search_options", "reasoning_effort")
"""Patched before others, in this order: the one brings tools, the other has become what others do not go with."""
_MOST_CHOICES: Final = 128


@dataclass(frozen=True, slots=True)
class RequestPatches:
    """The patches of one target."""

    by_param: Mapping[str, Patch]
    """In the order to apply them, so that of several refusals it is always the same one that is told."""
    special: frozenset[str]
    """Parameters for which the target may refuse a request, or give a client less than another one would."""
    unknown: frozenset[str]
    """Parameters that need no patch, because the allow-list leaves them out."""


def compile_patches(
    spec: ProviderSpec,
    provider: str,
    canonical: str = "",
    most: int | None = None,
    offers: Offers | None = None,
    window: int | None = None,
) -> RequestPatches:
    """The patches for the model called *canonical*, whose answers have at most *most* tokens, within *window*."""
    compiler = _Compiler(TargetFacts(spec, provider, canonical, most, offers, window))
    compiled = compile_conflicts(spec, provider, canonical)
    unknown: set[str] = set()
    special: set[str] = set(compiled.keys() & (CONTRACT - {OLD_LIMIT, NEW_LIMIT}))
    for param, patch in compiler.patches():
        if _may_refuse(param, patch):
            special.add(param)
        if _left_to_the_allow_list(spec, patch):
            unknown.add(param)
        else:
            compiled.setdefault(param, []).append(patch)
    return RequestPatches(
        {
            param: patches[0] if len(patches) == 1 else InTurn(param, tuple(patches))
            for param, patches in sorted(compiled.items(), key=lambda item: (_place(item[0]), item[0]))
        },
        frozenset(special),
        frozenset(unknown),
    )


def _place(param: str) -> int:
    return _FIRST.index(param) if param in _FIRST else len(_FIRST)


def _left_to_the_allow_list(spec: ProviderSpec, patch: Patch) -> bool:
    """Whether the patch would only leave out what `AllowList` leaves out all the same, and has nothing to say of it."""
    match patch:
        case LeaveOut():
            param, silent = patch.param, not patch.reason and (not patch.refuse or patch.param in CONTRACT)
        case ResponseFormat():
            param, silent = "response_format", not any(patch.lacking.values())
        case _:
            return False
    return silent and spec.transport.unknown_body_fields.only_known and param not in known_parameters(spec)


def limit_to_send(spec: ProviderSpec, most: int | None) -> SendLimit | None:
    """The limit that each request has to have, where the target needs one."""
    for name in (NEW_LIMIT, OLD_LIMIT):
        facts = spec.params.get(name)
        if facts is not None and facts.patch is Word.SEND_LIMIT:
            known = facts.support in (Support.NATIVE, Support.LIMITED, Support.CONDITIONAL)
            return SendLimit(name if known else OLD_LIMIT, min(most or DEFAULT_LIMIT, DEFAULT_LIMIT))
    return None


def _may_refuse(param: str, patch: Patch) -> bool:
    match patch:
        case LeaveOut():
            return patch.refuse or param in CONTRACT
        case Clamp():
            return patch.lossy
        case (
            AsCount()
            | AsTool()
            | AtMost()
            | NoTools()
            | ToolsIfOffered()
            | ToolChoice()
            | FewerTools()
            | ResponseFormat()
        ):
            return True
        case _:
            return False


@dataclass(frozen=True, slots=True)
class _Compiler:
    """Makes the patches of one target."""

    target: TargetFacts

    def patches(self) -> Iterator[tuple[str, Patch]]:
        """Each patch with its parameter, in the order to apply those of one parameter."""
        yield from self._limits()
        yield from logprob_patches(self.target)
        yield from tool_patches(self.target)
        yield from format_patches(self.target)
        yield from self._single("n", self._choices)
        yield from self._single("stop", self._stops)
        yield from self._single("reasoning_effort", self._effort)
        yield from self._single("web_search_options", self._web_search)
        if self.target.spec.transport.unknown_body_fields.support is Support.IGNORED:
            own = {name.partition(".")[0] for name in self.target.spec.extra_params}
            own |= self.target.spec.reasoning.off.keys()
            yield from ((name, LeaveOut(name, self.target.provider)) for name in sorted(FOREIGN - own))
        for name, facts in self.target.spec.params.items():
            if name not in _OWN and "." not in name:
                yield from ((name, patch) for patch in self._other(name, facts))

    def _single(self, name: str, compile_one: Callable[[ParamSpec], Patch | None]) -> Iterator[tuple[str, Patch]]:
        facts = self.target.spec.params.get(name)
        patch = compile_one(facts) if facts is not None else None
        if patch is not None:
            yield name, patch

    def _limits(self) -> Iterator[tuple[str, Patch]]:
        newer, older = self.target.spec.params.get(NEW_LIMIT), self.target.spec.params.get(OLD_LIMIT)
        name = None
        if newer is not None and (newer.to == OLD_LIMIT or self.target.has_no(newer)):
            name = OLD_LIMIT
        elif older is not None and (older.to == NEW_LIMIT or self.target.has_no(older)):
            name = NEW_LIMIT
        elif newer is not None and newer.to is not None:
            name = newer.to
        patch = OutputLimit(self.target.provider, name, self.target.most, self.target.window)
        yield NEW_LIMIT, patch
        if self.target.most is not None or self.target.window is not None or name not in (None, OLD_LIMIT):
            yield OLD_LIMIT, patch

    def _choices(self, facts: ParamSpec) -> Patch | None:
        if facts.patch is Word.FAN_OUT:
            return None  # no request has more than it takes
        if facts.support is Support.LIMITED and facts.max is not None:
            return AtMost("n", self.target.provider, int(facts.max)) if facts.max < _MOST_CHOICES else None
        if self.target.lacks(facts) or facts.support in (Support.IGNORED, Support.LIMITED):
            return AtMost("n", self.target.provider, 1)
        return None

    def _stops(self, facts: ParamSpec) -> Patch | None:
        if self.target.has_no(facts):
            return Stops(0)
        watched = facts.patch is Word.CLIENT_SIDE_STOP
        if watched or facts.form is Form.ARRAY:
            return Stops(facts.max_items if watched or facts.max_items else None, facts.form is Form.ARRAY)
        return None

    def _effort(self, facts: ParamSpec) -> Patch | None:
        off = {
            name: value
            for name, value in self.target.spec.reasoning.switch_for(self.target.canonical).items()
            if name != "reasoning_effort"
        }
        if self.target.has_no(facts):
            if not off:
                return self.target.without("reasoning_effort", facts)
            return Effort(self.target.provider, (), {}, off)
        allowed = facts.values_for(self.target.canonical)
        if allowed:
            return Effort(self.target.provider, allowed, facts.map, off)
        return None

    def _web_search(self, facts: ParamSpec) -> Patch | None:
        held = not facts.models or is_one_of(self.target.canonical, facts.models)
        if facts.tool and held:
            alone = any(conflict.when[0] == "tools" for conflict in self.target.spec.conflicts)
            return AsTool("web_search_options", self.target.provider, facts.tool, alone)
        if self.target.lacks(facts) or facts.support in (Support.IGNORED, Support.RENAMED):
            return self.target.without("web_search_options", facts)
        return None

    def _other(self, name: str, facts: ParamSpec) -> Iterator[Patch]:
        lacks = self.target.lacks(facts)
        if (lacks or facts.support is Support.IGNORED) and facts.patch is Word.FOLD_INTO_USER:
            user = self.target.spec.params.get("user")
            taken = user is None or not self.target.has_no(user)
            yield FoldIntoUser(name) if taken else self.target.without(name, facts)
        elif lacks or (facts.support is Support.IGNORED and self._worth_telling(name, facts)):
            yield self.target.without(name, facts)
        elif facts.support is not Support.IGNORED:
            yield from self._changed(name, facts)

    def _worth_telling(self, name: str, facts: ParamSpec) -> bool:
        """Whether that a parameter has no effect is the client's business; what is only noted down is not."""
        only_known = self.target.spec.transport.unknown_body_fields.only_known
        return facts.patch is not None or name not in ADVISORY or only_known

    def _changed(self, name: str, facts: ParamSpec) -> Iterator[Patch]:
        if facts.omit:
            yield Omit(name, frozenset(facts.omit))
        if facts.form is Form.UNSIGNED:
            yield WithoutSign(name)
        if facts.map or facts.values:
            yield Words(name, self.target.provider, facts.map, frozenset(facts.values))
        bounds = self._bounds(name, facts)
        if bounds:
            yield Clamp(name, self.target.provider, **bounds)
        if facts.to is not None and facts.support is Support.RENAMED:
            yield Rename(name, facts.to)

    def _bounds(self, name: str, facts: ParamSpec) -> dict[str, Any]:
        if name not in _WIDEST:
            return {}
        low, high = _WIDEST[name]
        bounds = {
            "low": facts.min if facts.min is not None and facts.min > low else None,
            "high": facts.max if facts.max is not None and facts.max < high else None,
            "above": facts.min_exclusive if facts.min_exclusive is not None and facts.min_exclusive >= low else None,
            "below": facts.max_exclusive if facts.max_exclusive is not None and facts.max_exclusive <= high else None,
        }
        return {word: bound for word, bound in bounds.items() if bound is not None}
