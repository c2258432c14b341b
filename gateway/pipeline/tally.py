"""What the requests of one attempt consumed: most attempts send one, those that need a shape several."""

from __future__ import annotations

from typing import Final

import msgspec

from adapters.errors import ProviderError
from adapters.pricing import estimated_tokens, prompt_bytes
from adapters.types import Body, FailureKind, Usage
from gateway.pipeline.holds import Hold
from gateway.upstream.base import Counts

# Failures after which nothing can be owed, because no provider worked on the request.
_NOTHING_OWED: Final = frozenset(
    {
        FailureKind.CONNECT,
        FailureKind.DNS,
        FailureKind.TLS,
        FailureKind.CONNECT_TIMEOUT,
        FailureKind.NO_CAPACITY,
        FailureKind.ENGINE_DOWN,
        FailureKind.UNSUPPORTED_PARAMETER,
    }
)


def owes_nothing(status: int | None, failure: ProviderError | None) -> bool:
    """Whether a request that was sent and came to *status* and *failure* costs nothing all the same."""
    if failure is None:
        return False
    refused = status is not None and status != 200
    return refused or not failure.sent or failure.kind in _NOTHING_OWED


class SentCall(msgspec.Struct, eq=False):
    """One of several requests. The HTTP client sets *sent* and *counts*."""

    body: Body
    """What was asked, in OpenAI's words."""
    sent: bool = False
    status: int | None = None
    usage: Usage | None = None
    counts: Counts | None = None
    text_bytes: int = 0
    """Text received so far: what an answer that breaks off is charged by."""
    failure: ProviderError | None = None

    def owed(self) -> Usage | None:
        """What was consumed, by the provider's figures or else by ours; None for nothing."""
        if self.usage is not None:
            return self.usage
        if not self.sent or owes_nothing(self.status, self.failure):
            return None
        counted = self.counts.usage() if self.counts is not None else None
        if counted is not None:
            return counted
        return Usage(estimated_tokens(prompt_bytes(self.body)), estimated_tokens(self.text_bytes), estimated=True)


class Tally:
    """The requests of an attempt, added up: each is charged with its own prompt."""

    __slots__ = ("calls",)

    def __init__(self) -> None:
        self.calls: list[SentCall] = []

    def begin(self, body: Body) -> SentCall:
        """Another request is about to be sent."""
        call = SentCall(body)
        self.calls.append(call)
        return call

    def resolve(self, hold: Hold) -> None:
        """Settle *hold* from what all requests used; estimate where one did not tell, void where none is owed for."""
        owed = [usage for call in self.calls if (usage := call.owed()) is not None]
        if not owed:
            hold.void()
            return
        total = Usage(
            sum(usage.prompt_tokens for usage in owed),
            sum(usage.completion_tokens for usage in owed),
            sum(usage.cached_tokens for usage in owed),
            sum(usage.reasoning_tokens for usage in owed),
            any(usage.estimated for usage in owed),
        )
        if total.estimated:
            hold.estimate(total, owed)
        else:
            hold.settle(total, owed)
