"""A target as the attempt loop uses it: with its adapter, its client and the heads of its requests."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from adapters.adapter import Adapter, Prepared
from adapters.errors import ProviderError
from adapters.target import Target
from adapters.types import Operation
from gateway.pipeline.provider_keys import REST_SECONDS, ProviderKeys
from gateway.pipeline.rests import TargetRests
from gateway.pipeline.upstream_limits import UpstreamLimits
from gateway.upstream.base import RequestHead, Upstream
from policies.retry import KEY_REFUSED

if TYPE_CHECKING:
    from gateway.data_plane.known_body import KnownBody
    from gateway.pipeline.call import Call

_MOST_KNOWN: Final = 64

_log = logging.getLogger(__name__)


class Concurrency:
    """How many requests a provider may have at a time; those beyond it go to the next target."""

    __slots__ = ("limit", "used")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0

    def take(self) -> bool:
        """Take a place, if there is one; it must be given back then."""
        if self.used >= self.limit:
            return False
        self.used += 1
        return True

    def give_back(self) -> None:
        self.used -= 1


class Backend:
    """A target, and everything needed to send it a request without further thought."""

    __slots__ = (
        "_around",
        "_heads",
        "_keys",
        "adapter",
        "concurrency",
        "headers",
        "limits",
        "rests",
        "target",
        "upstream",
    )

    def __init__(
        self,
        target: Target,
        adapter: Adapter,
        upstream: Upstream,
        heads: Mapping[Operation, tuple[RequestHead, ...]],
        headers: bytes,
        concurrency: Concurrency | None,
        rests: TargetRests,
        keys: ProviderKeys | None = None,
    ) -> None:
        """*heads*: one for each of the provider's keys; *headers*: the static headers of its answers.

        *rests* are those of the target, *keys* takes the turns of its keys, where there are several.
        """
        self.target = target
        self.adapter = adapter
        self.upstream = upstream
        self.headers = headers
        self.limits = UpstreamLimits(adapter.limits) if adapter.limits else None
        """None where the provider tells nothing of its limits."""
        self.concurrency = concurrency
        self.rests = rests
        self._around: dict[KnownBody, tuple[bytes, bytes] | None] = {}
        """What is sent before and behind the messages of bodies that come again; None where it depends on them."""
        adapter.rules.when_learned = self._around.clear
        self._heads = heads
        self._keys = keys

    def head(self, operation: Operation, now: float) -> RequestHead | None:
        """The head of the next request, keys in turn; None when the target does not offer *operation*."""
        heads = self._heads.get(operation)
        if heads is None:
            return None
        if self._keys is None:
            return heads[0]
        rests = self.rests
        return heads[self._keys.take(now, rests if rests.everyone.latest > now else None)]

    def prepare(self, call: Call) -> Prepared:
        """What to send for *call*; raises as `Adapter.prepare` does."""
        known = call.known
        if known is not None:
            around = self._around.get(known) or self._learn(known, call)
            if around is not None:
                return Prepared(b"".join((around[0], call.body["messages"], around[1])), ())
        return self.adapter.prepare(call.body, call.operation, call.stream, call.unsupported)

    def _learn(self, known: KnownBody, call: Call) -> tuple[bytes, bytes] | None:
        around = self._around
        if known in around:
            return None
        if len(around) >= _MOST_KNOWN:
            around.clear()
        found = around[known] = self.adapter.around(call.body, call.operation, call.stream)
        return found

    def failed(self, failure: ProviderError, operation: Operation, head: RequestHead | None, now: float) -> None:
        """Take what *failure*, of a request with *head*, says of the requests to come."""
        position = self._heads[operation].index(head) if head is not None and self._keys is not None else 0
        if failure.kind in KEY_REFUSED:
            self._refused(position, now)
            return
        self.rests.note(failure, position, now)
        left = self.rests_for(now, by_name=True)
        if left and failure.retry_after_seconds is not None:
            # Another request may have been told of a later moment, and another key may be free sooner.
            failure.retry_after_seconds = left

    def rests_for(self, now: float, *, by_name: bool = False) -> float:
        """Seconds until one of the keys may be used for the target; 0 where one may be.

        *by_name* counts only what the provider has asked for. A key that was refused counts for nothing: when it is
        the last one, it is tried.
        """
        until = self.rests.named_until if by_name else self.rests.until
        if self._keys is None:
            return max(0.0, until(0) - now)
        return max(0.0, min(map(until, self._keys.usable(now)), default=now) - now)

    def has_another_key(self, now: float) -> bool:
        """Whether, after a refusal, there is a key left to try."""
        return self._keys is not None and bool(self._keys.usable(now)) and not self.rests_for(now)

    def _refused(self, position: int, now: float) -> None:
        """The provider refused a key: let it rest, if there are others."""
        if self._keys is not None:
            self._keys.refuse(position, now)
            _log.warning(
                "%s refused key %d of %d; it rests for %d minutes",
                self.target.provider,
                position + 1,
                self._keys.count,
                round(REST_SECONDS / 60),
            )
