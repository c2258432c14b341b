"""One run of the battery against one target: what is known of it, what has been seen so far, and how to ask."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from adapters.simulator.conflicts import holds as applies
from adapters.simulator.options import Options
from adapters.simulator.refusal import Refusals
from adapters.simulator.served import ServedModels
from adapters.spec import Entry, ModelSpec, ParamSpec, PartSupport, ProviderSpec, Support
from adapters.target import Target
from adapters.types import Operation
from adapters.vocabulary import Patch, SchemaPlace
from gateway.probe.finding import Finding, differs, holds, not_settled
from gateway.probe.samples import SMALL, Fragment, user
from gateway.probe.seen import Seen

Send = Callable[[str, str, bytes], Awaitable[Seen]]
"""Method, path below the base URL, and body of a request to its answer."""

_SILENCES: Final = 3
"""So many requests in a row without any answer, and there is nobody there."""


class UnreachableError(Exception):
    """The target does not answer, or no longer, so that nothing can be learned."""


LIMIT_NAMES: Final = ("max_completion_tokens", "max_tokens")


@dataclass(slots=True)
class Session:
    """What the checks share."""

    target: Target
    send: Send
    wanted: tuple[str, ...] = ()
    """The facts that are asked for, with all below them; empty: every one."""
    limit_name: str | None = None
    """The parameter that keeps answers short; None until one was seen to be taken."""
    strict: bool = False
    """Whether unknown fields are refused: as the file says, until it has been seen."""
    base: Seen | None = None
    """The answer to the plainest request."""
    outcomes: dict[str, bool] = field(default_factory=dict)
    """The parameters tried so far: whether they were taken."""
    lost: set[str] = field(default_factory=set)
    """The parameters that were taken, and had no effect."""
    plain_forms: set[str] = field(default_factory=set)
    """The parameters taken as OpenAI has them, whatever form the file says they need."""
    answers: list[Seen] = field(default_factory=list)
    """Every answer so far, for what can be read in passing."""

    @property
    def spec(self) -> ProviderSpec:
        return self.target.spec

    @property
    def canonical(self) -> str:
        return self.spec.canonical(self.target.model)

    @property
    def model(self) -> ModelSpec | None:
        """What the file says of the target's model, if anything."""
        return next((one for one in self.spec.models if one.id == self.target.model), None)

    def wants(self, fact: str) -> bool:
        """Whether *fact* is asked for, or anything below it."""
        return not self.wanted or not fact or any(_meet(fact, name) for name in self.wanted)

    async def chat(
        self, fragment: Mapping[str, Any] | None = None, messages: Sequence[Any] | str = "", room: int = SMALL
    ) -> Seen:
        """The answer to a chat with *fragment* in it, of *room* tokens at most."""
        told = [user(messages) if messages else user()] if isinstance(messages, str) else list(messages)
        body: Fragment = {"model": self.target.model, "messages": told}
        fragment = fragment or {}
        if self.limit_name is not None and not any(name in fragment for name in LIMIT_NAMES):
            body[self.limit_name] = room
        body |= fragment
        return await self.post(Operation.CHAT, body)

    async def post(self, operation: Operation, body: Mapping[str, Any], path: str | None = None) -> Seen:
        """The answer to any body, remembered."""
        endpoint = self.spec.endpoints.get(operation)
        where = path or (endpoint.path if endpoint is not None else None) or f"/{operation.value.replace('_', '/')}"
        seen = await self.send("POST", where, json.dumps(body, ensure_ascii=False).encode())
        if body.get("stream") is True and seen.status == 200:
            # Who knows no streams answers whole.
            whole = "json" in seen.headers.get("content-type", "")
            seen = replace(seen, streamed=not whole)
        statuses = tuple(one for case in self.spec.errors.cases if case.case == "validation" for one in case.status)
        seen = replace(seen, also_refusals=statuses)
        self.answers.append(seen)
        if len(self.answers) >= _SILENCES and not any(one.status for one in self.answers[-_SILENCES:]):
            raise UnreachableError(f"it answers no more: {seen.complaint()}")
        return seen

    def param(self, name: str) -> ParamSpec | None:
        return self.spec.params.get(name)

    def acts_on(self, name: str) -> bool:
        """Whether the parameter is taken, as far as was seen, and meant to have an effect."""
        rule = self.param(name)
        return (
            self.outcomes.get(name, False)
            and name not in self.lost
            and (rule is None or rule.support is not Support.IGNORED)
        )

    def in_conflict(self, body: Mapping[str, Any]) -> bool:
        """Whether the file says that *body* is a combination that is refused."""
        options = Options(models=(self.target.model,))
        served = ServedModels(self.spec, options, Refusals(self.spec)).find(self.target.model)
        return any(all(applies(one, body, served) for one in conflict.conditions) for conflict in self.spec.conflicts)

    def means(self, name: str) -> bool:
        """Whether the file says that the parameter, under its own name, has an effect."""
        rule = self.param(name)
        if rule is None:
            return True
        if rule.support in (Support.IGNORED, Support.ABSENT) or (
            rule.support is Support.RENAMED and rule.to not in (None, name)
        ):
            return False
        return self.expected(name, rule) and not (self.model is not None and name in self.model.lacks)

    def expected(self, name: str, rule: ParamSpec) -> bool:
        """Whether the file says that a use of the parameter, under its own name, is taken."""
        if self.model is not None and name in self.model.lacks:
            return not self.strict
        if rule.max_items == 0:
            return False
        match rule.support:
            case Support.REJECTED | Support.UNKNOWN:
                return False
            case Support.ABSENT:
                return not self.strict and not name.startswith("response_format.")
            case Support.RENAMED if rule.to not in (None, name):
                return not self.strict
            case Support.RENAMED if rule.dialect is not None:
                return rule.dialect.place is SchemaPlace.OPENAI
            case Support.CONDITIONAL if rule.models:
                return rule.held_by(self.canonical)
            case Support.CONDITIONAL:
                bounded = rule.values or rule.by_model or rule.requires
                return not (rule.status and rule.patch in (Patch.STRIP, Patch.ERROR) and not bounded)
            case _:
                return True

    def entry_taken(self, entry: Entry | None) -> bool | None:
        """Whether the file says that a message may hold what *entry* is about; None where it depends."""
        if entry is None:
            return True
        if entry.support is Support.CONDITIONAL:
            return entry.held_by(self.canonical) if entry.models else (None if entry.patch is not None else True)
        return entry.support not in (Support.REJECTED, Support.ABSENT, Support.UNKNOWN)

    def part_taken(self, kind: str) -> bool | None:
        """Whether the file says that a content part of that type is taken; None where it depends on the model."""
        support = self.spec.messages.content_parts.get(kind, PartSupport.ABSENT)
        if support is PartSupport.ABSENT:
            return False
        if support is not PartSupport.CONDITIONAL:
            return True
        return self.model.vision if self.model is not None and kind == "image_url" else None


def _meet(fact: str, name: str) -> bool:
    """Whether one of the two is the other, or stands below it."""
    name = name.rstrip("*.")
    return fact == name or fact.startswith((f"{name}.", f"{name}:")) or name.startswith((f"{fact}.", f"{fact}:"))


def compare(
    fact: str, expected: bool | None, seen: Seen, override: Mapping[str, Any], *, contested: bool = False
) -> Finding:
    """What a request that is *expected* to be taken or refused says of *fact*, by its answer."""
    says = {True: "taken", False: "refused", None: "it depends"}[expected]
    if not (seen.taken or seen.refused):
        return not_settled(fact, says, f"{seen.words}: {seen.complaint()}", contested)
    if expected is None or expected is seen.taken:
        return holds(fact, says, seen.words, contested)
    return differs(fact, says, seen.words, override, contested)


def is_contested(entry: Entry | None) -> bool:
    """Whether a real key should settle it before anything else."""
    return entry is not None and (entry.conf == "contested" or entry.support is Support.UNKNOWN)
