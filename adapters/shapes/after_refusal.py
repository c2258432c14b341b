"""A shape for what a provider may or may not take: it waits until the provider has refused it."""

from __future__ import annotations

from adapters.draft import Draft
from adapters.errors import ProviderError
from adapters.shapes.base import Caller, Outcome, Shape
from adapters.types import Action, Body, FailureKind

# A prompt that is too long, say, has nothing to do with the combination.
_OF_THE_REQUEST = frozenset((FailureKind.BAD_REQUEST, FailureKind.UNSUPPORTED_PARAMETER))


class AfterRefusal:
    """*shape*, from the first time on that the target answered *status* to what the shape is for and the shape helped.

    It is its own rescue: the refused request is answered by the shape. Where that fails as well, the refusal had
    another reason, and the shape goes on waiting.
    """

    def __init__(self, shape: Shape, status: int) -> None:
        self._shape = shape
        self._status = status
        self._awake = False

    @property
    def param(self) -> str:
        return self._shape.param

    @property
    def action(self) -> Action:
        return self._shape.action

    @property
    def lossy(self) -> bool:
        return self._shape.lossy

    @property
    def triggers(self) -> frozenset[str]:
        return self._shape.triggers

    def applies(self, draft: Draft) -> bool:
        return self._awake and self._shape.applies(draft)

    def first(self, body: Body) -> Body:
        return self._shape.first(body)

    async def answer(self, body: Body, caller: Caller) -> Outcome:
        return await self._shape.answer(body, caller)

    # As a rescue

    def rescued(self, draft: Draft, failure: ProviderError) -> Shape | None:
        # Once awake as well: requests that were on their way before that are refused like the first.
        if failure.status != self._status or failure.kind not in _OF_THE_REQUEST:
            return None
        if self.triggers.isdisjoint(draft.body):
            return None
        return self if self._shape.applies(draft) else None

    def worked(self) -> None:
        self._awake = True
