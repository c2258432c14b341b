"""Compiles what a provider file says of parameters into the patches of one target.

A parameter that can go as it is compiles to nothing, so that a request pays only for those it carries and that need
something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from adapters.allow_list import FOREIGN
from adapters.conflict_patches import compile_conflicts
from adapters.format_patches import ResponseFormat
from adapters.logprob_patches import AsCount, AsFlag, WantShape, alternatives_within
from adapters.parameter_patches import (
    DEFAULT_LIMIT,
    NEW_LIMIT,
    OLD_LIMIT,
    AsTool,
    AtMost,
    Clamp,
    Effort,
    FoldIntoUser,
    Omit,
    OutputLimit,
    SendLimit,
    Stops,
    WithoutSign,
    Words,
)
from adapters.patches import ADVISORY, CONTRACT, InTurn, LeaveOut, Patch, Rename
from adapters.spec import ParamSpec, ProviderSpec, Support
from adapters.spec_parts import is_one_of
from adapters.tool_patches import (
    FUNCTION_MEMBERS,
    CleanTools,
    FewerTools,
    NoTools,
    OneCall,
    OrderlyTools,
    ToolChoice,
    ToolsIfOffered,
)
from adapters.vocabulary import EXTENSIONS, Form, LogprobsShape
from adapters.vocabulary import Patch as Word

Offers = Callable[[str], bool | None]

_LACKING: Final = (Support.REJECTED, Support.ABSENT, Support.UNKNOWN)
# What the gateway lets through: bounds that are no narrower need no patch.
_WIDEST: Final[Mapping[str, tuple[float, float]]] = {
    "temperature": (0, 2), "top_p": (0, 1), "frequency_penalty": (-2, 2), "presence_penalty": (-2, 2),
}  # fmt: skip
_OWN: Final = frozenset((
    OLD_LIMIT, NEW_LIMIT, "n", "stop", "logprobs", "top_logprobs", "tools", "tool_choice", "parallel_tool_calls",
    "reasoning_effort", "stream", "web_search_options",
))  # fmt: skip
"""Parameters that are compiled each in its own way."""
_FIRST: Final = ("web_search_options",)
"""Patched before others, because it brings tools that others have to see."""
_MOST_CHOICES: Final = 128
_MOST_ALTERNATIVES: Final = 20


@dataclass(frozen=True, slots=True)
class RequestPatches:
    """The patches of one target."""

    by_param: Mapping[str, Patch]
    """In the order to apply them, so that of several refusals it is always the same one that is told."""
    special: frozenset[str]
    """Parameters for which the target may refuse a request, or give a client less than another one would."""


def compile_patches(
    spec: ProviderSpec, provider: str, canonical: str = "", most: int | None = None, offers: Offers | None = None
) -> RequestPatches:
    """The patches for the model called *canonical*, whose answers have at most *most* tokens."""
    facts = _Facts(spec, provider, canonical, most, offers)
    compiled = compile_conflicts(spec, provider, canonical)
    special: set[str] = set(compiled.keys() & (CONTRACT - {OLD_LIMIT, NEW_LIMIT}))
    for param, patch in facts.patches():
        compiled.setdefault(param, []).append(patch)
        if _may_refuse(param, patch):
            special.add(param)
    return RequestPatches(
        {
            param: patches[0] if len(patches) == 1 else InTurn(param, tuple(patches))
            for param, patches in sorted(compiled.items(), key=lambda item: (item[0] not in _FIRST, item[0]))
        },
        frozenset(special),
    )


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
class _Facts:
    """A provider file as it holds for one target."""

    spec: ProviderSpec
    provider: str
    canonical: str
    most: int | None
    offers: Offers | None

    def patches(self) -> Iterator[tuple[str, Patch]]:
        """Each patch with its parameter, in the order to apply those of one parameter."""
        yield from self._limits()
        yield from self._logprobs()
        yield from self._tools()
        yield from self._response_format()
        yield from self._single("n", self._choices)
        yield from self._single("stop", self._stops)
        yield from self._single("reasoning_effort", self._effort)
        yield from self._single("web_search_options", self._web_search)
        if self.spec.transport.unknown_body_fields.support is Support.IGNORED:
            own = {name.partition(".")[0] for name in self.spec.extra_params} | self.spec.reasoning.off.keys()
            yield from ((name, LeaveOut(name, self.provider)) for name in sorted(FOREIGN - own))
        for name, facts in self.spec.params.items():
            if name not in _OWN and "." not in name:
                yield from ((name, patch) for patch in self._other(name, facts))

    def _single(self, name: str, compile_one: Callable[[ParamSpec], Patch | None]) -> Iterator[tuple[str, Patch]]:
        facts = self.spec.params.get(name)
        patch = compile_one(facts) if facts is not None else None
        if patch is not None:
            yield name, patch

    def _lacks(self, facts: ParamSpec) -> bool:
        if facts.support is Support.CONDITIONAL and not facts.models:
            # It depends on what nobody can know beforehand: the file says whether to rely on it.
            return facts.patch in (Word.STRIP, Word.ERROR)
        return facts.support in _LACKING or (
            facts.support is Support.CONDITIONAL and not is_one_of(self.canonical, facts.models)
        )

    def _without(self, name: str, facts: ParamSpec) -> LeaveOut:
        return LeaveOut(name, self.provider, facts.hint or "", refuse=facts.patch is Word.ERROR)

    def _limits(self) -> Iterator[tuple[str, Patch]]:
        newer, older = self.spec.params.get(NEW_LIMIT), self.spec.params.get(OLD_LIMIT)
        name = None
        if newer is not None and (newer.to == OLD_LIMIT or self._lacks(newer) or newer.support is Support.IGNORED):
            name = OLD_LIMIT
        elif older is not None and (older.to == NEW_LIMIT or self._lacks(older) or older.support is Support.IGNORED):
            name = NEW_LIMIT
        elif newer is not None and newer.to is not None:
            name = newer.to
        patch = OutputLimit(self.provider, name, self.most)
        yield NEW_LIMIT, patch
        if self.most is not None or name not in (None, OLD_LIMIT):
            yield OLD_LIMIT, patch

    def _logprobs(self) -> Iterator[tuple[str, Patch]]:
        flag, number = self.spec.params.get("logprobs"), self.spec.params.get("top_logprobs")
        if flag is not None and (self._lacks(flag) or flag.support is Support.IGNORED):
            yield "logprobs", Omit("logprobs", frozenset((0,)))
            yield "logprobs", self._without("logprobs", flag)
            yield "top_logprobs", self._without("top_logprobs", number or flag)
            return
        highest = next((facts.max for facts in (number, flag) if facts is not None and facts.max is not None), None)
        most = int(highest) if highest is not None and highest < _MOST_ALTERNATIVES else None
        if flag is not None and flag.form is Form.COUNT:
            yield "logprobs", AsCount(most)
            yield "top_logprobs", AsCount(most)
            return
        yield "logprobs", AsFlag(most)
        if flag is not None and flag.response_shape is not LogprobsShape.OPENAI:
            yield "logprobs", WantShape()
        if number is not None and (self._lacks(number) or number.support is Support.IGNORED):
            yield "top_logprobs", self._without("top_logprobs", number)
        elif most is not None:
            yield "top_logprobs", alternatives_within(self.provider, most)

    def _tools(self) -> Iterator[tuple[str, Patch]]:
        for name in ("tools", "tool_choice", "parallel_tool_calls"):
            yield name, OrderlyTools()
        tools = self.spec.params.get("tools")
        if tools is not None:
            yield from (("tools", patch) for patch in self._tool_list(tools))
        choice = self.spec.params.get("tool_choice")
        if choice is not None:
            words = choice.values_for(self.canonical)
            if self._lacks(choice) or choice.support is Support.IGNORED:
                words = ()
            if words or choice.support is not Support.NATIVE:
                require = choice.patch is Word.REQUIRE_NAMED_TOOL
                if words or choice.support is not Support.CONDITIONAL:
                    yield "tool_choice", ToolChoice(self.provider, words, require, choice.hint or "")
        parallel = self.spec.params.get("parallel_tool_calls")
        if parallel is not None and (
            self._lacks(parallel) or parallel.support is Support.IGNORED or parallel.patch is Word.KEEP_FIRST_CALL
        ):
            yield "parallel_tool_calls", OneCall()

    def _tool_list(self, facts: ParamSpec) -> Iterator[Patch]:
        if facts.support is Support.CONDITIONAL and not facts.models and self.offers is not None:
            yield ToolsIfOffered(self.provider, self.offers, facts.hint or "")
        elif self._lacks(facts) or facts.support is Support.IGNORED:
            yield NoTools(self.provider, facts.hint or "")
            return
        if facts.max is not None:
            yield FewerTools(self.provider, int(facts.max))
        nested = self.spec.transport.unknown_body_fields.nested
        if facts.patch is Word.CLEAN_TOOLS:
            yield CleanTools(FUNCTION_MEMBERS - {"strict"}, inline_definitions=True)
        elif nested:
            yield CleanTools(frozenset(self.spec.messages.fields.function))

    def _response_format(self) -> Iterator[tuple[str, Patch]]:
        said = {
            name.partition(".")[2]: facts
            for name, facts in self.spec.params.items()
            if name.startswith("response_format.")
        }
        lacking = {
            kind: facts.hint or ""
            for kind, facts in said.items()
            if self._lacks(facts) or facts.support is Support.IGNORED
        }
        if self.spec.transport.unknown_body_fields.only_known:
            lacking |= {kind: "" for name in EXTENSIONS if (kind := name.partition(".")[2]) not in said}
        schema = said.get("json_schema")
        has_schema = schema is not None and "json_schema" not in lacking
        dialect = schema.dialect if schema is not None and has_schema else None
        as_schema = "json_object" in lacking and has_schema and said["json_object"].patch is Word.REWRITE_SCHEMA
        closed = self.spec.transport.unknown_body_fields.nested
        if lacking or dialect is not None or closed:
            yield "response_format", ResponseFormat(self.provider, lacking, dialect, as_schema, closed)

    def _choices(self, facts: ParamSpec) -> Patch | None:
        if facts.support is Support.LIMITED and facts.max is not None:
            return AtMost("n", self.provider, int(facts.max)) if facts.max < _MOST_CHOICES else None
        if self._lacks(facts) or facts.support in (Support.IGNORED, Support.LIMITED):
            return AtMost("n", self.provider, 1)
        return None

    def _stops(self, facts: ParamSpec) -> Patch | None:
        if self._lacks(facts) or facts.support is Support.IGNORED:
            return Stops(0)
        watched = facts.patch is Word.CLIENT_SIDE_STOP
        if watched or facts.form is Form.ARRAY:
            return Stops(facts.max_items if watched or facts.max_items else None, facts.form is Form.ARRAY)
        return None

    def _effort(self, facts: ParamSpec) -> Patch | None:
        off = {
            name: value
            for name, value in self.spec.reasoning.switch_for(self.canonical).items()
            if name != "reasoning_effort"
        }
        if self._lacks(facts) or facts.support is Support.IGNORED:
            return Effort(self.provider, (), {}, off)
        allowed = facts.values_for(self.canonical)
        if allowed:
            return Effort(self.provider, allowed, facts.map, off)
        return None

    def _web_search(self, facts: ParamSpec) -> Patch | None:
        held = not facts.models or is_one_of(self.canonical, facts.models)
        if facts.tool and held:
            alone = any(conflict.when[0] == "tools" for conflict in self.spec.conflicts)
            return AsTool("web_search_options", self.provider, facts.tool, alone)
        if self._lacks(facts) or facts.support in (Support.IGNORED, Support.RENAMED):
            return self._without("web_search_options", facts)
        return None

    def _other(self, name: str, facts: ParamSpec) -> Iterator[Patch]:
        lacks = self._lacks(facts)
        if (lacks or facts.support is Support.IGNORED) and facts.patch is Word.FOLD_INTO_USER:
            user = self.spec.params.get("user")
            taken = user is None or not (self._lacks(user) or user.support is Support.IGNORED)
            yield FoldIntoUser(name) if taken else self._without(name, facts)
        elif lacks or (facts.support is Support.IGNORED and self._worth_telling(name, facts)):
            yield self._without(name, facts)
        elif facts.support is not Support.IGNORED:
            yield from self._changed(name, facts)

    def _worth_telling(self, name: str, facts: ParamSpec) -> bool:
        """Whether that a parameter has no effect is the client's business; what is only noted down is not."""
        only_known = self.spec.transport.unknown_body_fields.only_known
        return facts.patch is not None or name not in ADVISORY or only_known

    def _changed(self, name: str, facts: ParamSpec) -> Iterator[Patch]:
        if facts.omit:
            yield Omit(name, frozenset(facts.omit))
        if facts.form is Form.UNSIGNED:
            yield WithoutSign(name)
        if facts.map or facts.values:
            yield Words(name, self.provider, facts.map, frozenset(facts.values))
        bounds = self._bounds(name, facts)
        if bounds:
            yield Clamp(name, self.provider, **bounds)
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
