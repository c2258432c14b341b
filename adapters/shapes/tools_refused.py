"""Models that turn out to have no tools: a provider says so once, and from then on tools are emulated there."""

from __future__ import annotations

from collections.abc import Sequence

from adapters.draft import Draft
from adapters.errors import ProviderError
from adapters.shapes.again import TOOLS, AskAgain
from adapters.shapes.base import Shape
from adapters.shapes.bodies import is_used
from adapters.spec import ErrorCaseSpec
from adapters.types import Action, Operation


class LearnedTools:
    """Tells of one target whether its model has tools: it has, until it is known better."""

    def __init__(self, cases: Sequence[ErrorCaseSpec]) -> None:
        """*cases* are those in which the provider says that it has none."""
        self._cases = tuple(cases)
        self._lacking = False

    def __call__(self, param: str) -> bool:
        return not self._lacking

    # As a rescue

    def rescued(self, draft: Draft, failure: ProviderError) -> Shape | None:
        if draft.operation is not Operation.CHAT or not is_used(draft.body, "tools"):
            return None
        message = failure.message.lower()
        if not any(
            failure.status in case.status and any(phrase in message for phrase in case.match) for case in self._cases
        ):
            return None
        # Perhaps not the first to say so: requests that were on their way before it was known end like that one.
        self._lacking = True
        return AskAgain("tools", Action.EMULATED, lossy=True, triggers=TOOLS)

    def worked(self) -> None:
        """It was known before."""
