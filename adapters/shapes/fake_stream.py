"""A stream from a target that does not stream what is asked for: asked whole, told in pieces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from adapters.draft import Draft
from adapters.shapes.base import Caller, Outcome
from adapters.shapes.bodies import without
from adapters.shapes.conditions import Predicate
from adapters.types import Action, Body


@dataclass(frozen=True, slots=True)
class FakeStream:
    """Asks whole what would be in one of *conflicts* as a stream; the client hears keep-alive comments until then."""

    conflicts: tuple[Predicate, ...]

    param: ClassVar[str] = "stream"
    action: ClassVar[Action] = Action.EMULATED
    lossy: ClassVar[bool] = False
    triggers: ClassVar[frozenset[str]] = frozenset(("stream",))

    def applies(self, draft: Draft) -> bool:
        return draft.stream and any(conflict(draft) for conflict in self.conflicts)

    def first(self, body: Body) -> Body:
        return without(body, "stream", "stream_options")

    async def answer(self, body: Body, caller: Caller) -> Outcome:
        return await caller.whole(self.first(body))
