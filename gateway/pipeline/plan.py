"""Which targets to try, in which order: eligible ones only, ordered by the model's policy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from adapters.target import Target
from gateway.catalog import Model
from gateway.pipeline.backend import Backend
from policies.base import Candidate, Policy, get_policy


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """A model's targets with everything that can be prepared before a request comes."""

    model: Model
    policy: Policy
    candidates: tuple[Candidate, ...]
    backends: tuple[Backend, ...]
    """By the candidates' positions."""
    alias: bytes | None = None
    """JSON of the name that answers carry as ``model``; None: the upstream's own (decision 25)."""

    @classmethod
    def build(cls, model: Model, backends: tuple[Backend, ...], *, alias: bytes | None = None) -> Route:
        """Prepare *model*; raises `policies.base.PolicyError` for an unknown strategy."""
        candidates = tuple(Candidate(backend.target, position) for position, backend in enumerate(backends))
        return cls(model, get_policy(model.strategy), candidates, backends, alias)

    def plan(self) -> Iterator[Backend]:
        """The backends in the order to try them."""
        if len(self.backends) == 1:
            return iter(self.backends)
        return iter([self.backends[candidate.position] for candidate in self.policy(self.candidates)])

    def headers_of(self, target: Target) -> bytes:
        """The static response headers for answers of *target*."""
        return next(backend.headers for backend in self.backends if backend.target is target)
