"""A target as the attempt loop uses it: with its adapter, its client and the heads of its requests."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from adapters.adapter import Adapter
from adapters.target import Target
from adapters.types import Operation
from gateway.upstream.base import RequestHead, Upstream


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

    __slots__ = ("_heads", "adapter", "concurrency", "headers", "target", "upstream")

    def __init__(
        self,
        target: Target,
        adapter: Adapter,
        upstream: Upstream,
        heads: Mapping[Operation, tuple[RequestHead, ...]],
        headers: bytes,
        concurrency: Concurrency | None,
    ) -> None:
        """*heads*: one for each of the provider's keys; *headers*: the static headers of its answers."""
        self.target = target
        self.adapter = adapter
        self.upstream = upstream
        self.headers = headers
        self.concurrency = concurrency
        self._heads = {
            operation: (of_keys[0] if len(of_keys) == 1 else itertools.cycle(of_keys))
            for operation, of_keys in heads.items()
        }

    def head(self, operation: Operation) -> RequestHead | None:
        """The head of the next request, keys in turn; None when the target does not offer *operation*."""
        head = self._heads.get(operation)
        return next(head) if isinstance(head, itertools.cycle) else head
