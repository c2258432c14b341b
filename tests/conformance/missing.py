"""Whether the absence of one patch is noticed by any of the conformance suite's requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial

from adapters.adapter import Adapter
from tests.conformance import endpoint_uses
from tests.conformance.habits import HABITS
from tests.conformance.judging import ask, judge
from tests.conformance.message_uses import MESSAGES
from tests.conformance.mutations import Mutation
from tests.conformance.rare_uses import INVALID, OWN, RARE
from tests.conformance.rehearsal import Rehearsal, fresh_adapter
from tests.conformance.stage import Stage
from tests.conformance.uses import USES, Use

_DROP = "x-gateway-unsupported: drop"


@dataclass(frozen=True, slots=True)
class Check:
    """Something that may fail."""

    about: frozenset[str]
    teaches: bool
    """An adapter may learn from it."""
    run: Callable[[Rehearsal, str], Awaitable[None]]


@cache
def checks() -> tuple[Check, ...]:
    """All there are."""
    return tuple(_checks())


def _checks() -> Iterator[Check]:
    for stream in (False, True):
        for use in (*USES, *RARE, *OWN, *INVALID, *MESSAGES):
            about = frozenset((use.head, *use.members))
            yield Check(about, False, partial(_ask, use, stream, ()))
            yield Check(about, False, partial(_ask, use, stream, (_DROP,)))
        for habit, parts in HABITS.values():
            yield Check(parts | {"answers"}, True, partial(_play, habit, stream))
        for name in endpoint_uses.COMPLETIONS:
            yield Check(frozenset(("completions", "prompt")), False, partial(endpoint_uses.complete, name, stream))
    for name in endpoint_uses.EMBEDDINGS:
        yield Check(frozenset(("embeddings",)), False, partial(endpoint_uses.embed, name))


async def _ask(use: Use, stream: bool, headers: tuple[str, ...], rehearsed: Rehearsal, model: str) -> None:
    answer, seen = await ask(rehearsed, model, use, stream, *headers)
    judge(rehearsed, model, use, answer, seen, dropping=bool(headers))


async def _play(habit: Callable[[Stage], Awaitable[None]], stream: bool, rehearsed: Rehearsal, model: str) -> None:
    await habit(Stage(rehearsed, model, stream))


async def is_missed(rehearsed: Rehearsal, models: Sequence[str], mutation: Mutation) -> bool:
    """Whether something fails without the patch at one of *models*, which have it in common.

    What is about the same parameter is tried first.
    """
    ordered = sorted(checks(), key=lambda check: mutation.about not in check.about)
    for model in models:
        backend = rehearsed.backend(model)
        whole = backend.adapter
        mutant: Adapter | None = None
        try:
            for check in ordered:
                if mutant is None or check.teaches:
                    mutant = fresh_adapter(backend.target)
                    mutation.change(mutant)
                backend.adapter = mutant
                try:
                    await check.run(rehearsed, model)
                except Exception:  # noqa: BLE001  whatever goes wrong without the patch shows that it is needed
                    return True
                if check.teaches:
                    mutant = None
        finally:
            backend.adapter = whole
    return False
