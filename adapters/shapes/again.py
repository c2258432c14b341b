"""The same request once more, now that more is known of the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from adapters.draft import Draft
from adapters.shapes.base import Caller, Continue, Outcome
from adapters.types import Action, Body

TOOLS: Final = frozenset(("tools",))


@dataclass(frozen=True, slots=True, eq=False)
class AskAgain:
    """A `Shape` that changes nothing by itself: what was learned makes another request of the same body."""

    param: str
    action: Action
    lossy: bool = False
    triggers: frozenset[str] = frozenset()

    def applies(self, draft: Draft) -> bool:
        return True

    def first(self, body: Body) -> Body:
        return body

    async def answer(self, body: Body, caller: Caller) -> Outcome:
        return Continue(body)
