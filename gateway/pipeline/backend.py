"""A target as the attempt loop uses it: with its adapter, its client and the heads of its requests."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from adapters.adapter import Adapter
from adapters.target import Target
from adapters.types import Operation
from gateway.pipeline.provider_keys import REST_SECONDS, ProviderKeys
from gateway.pipeline.upstream_limits import UpstreamLimits
from gateway.upstream.base import RequestHead, Upstream

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

    __slots__ = ("_heads", "_keys", "adapter", "concurrency", "headers", "limits", "target", "upstream")

    def __init__(
        self,
        target: Target,
        adapter: Adapter,
        upstream: Upstream,
        heads: Mapping[Operation, tuple[RequestHead, ...]],
        headers: bytes,
        concurrency: Concurrency | None,
        keys: ProviderKeys | None = None,
    ) -> None:
        """*heads*: one for each of the provider's keys; *headers*: the static headers of its answers.

        *keys* takes their turns, where there are several.
        """
        self.target = target
        self.adapter = adapter
        self.upstream = upstream
        self.headers = headers
        self.limits = UpstreamLimits(adapter.limits) if adapter.limits else None
        """None where the provider tells nothing of its limits."""
        self.concurrency = concurrency
        self._heads = heads
        self._keys = keys

    def head(self, operation: Operation, now: float) -> RequestHead | None:
        """The head of the next request, keys in turn; None when the target does not offer *operation*."""
        heads = self._heads.get(operation)
        if heads is None:
            return None
        return heads[0] if self._keys is None else heads[self._keys.take(now)]

    def key_refused(self, operation: Operation, head: RequestHead, now: float) -> None:
        """The provider refused the key of a request with *head*: let it rest, if there are others."""
        if self._keys is not None:
            heads = self._heads[operation]
            position = heads.index(head)
            self._keys.refuse(position, now)
            minutes = round(REST_SECONDS / 60)
            _log.warning(
                "%s refused key %d of %d; it rests for %d minutes",
                self.target.provider,
                position + 1,
                len(heads),
                minutes,
            )

    def has_another_key(self, now: float) -> bool:
        """Whether, after a refusal, there is a key left to try."""
        return self._keys is not None and self._keys.any_left(now)
