"""Which targets to try, in which order: eligible ones only, ordered by the model's policy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from adapters.draft import Unsupported
from adapters.errors import ProviderError
from adapters.patches import is_neutral
from adapters.target import Target
from adapters.types import FailureKind
from gateway.catalog import Model
from gateway.errors import UnsupportedParameterError
from gateway.pipeline.around_rests import without_resting
from gateway.pipeline.backend import Backend
from gateway.pipeline.call import Call
from gateway.pipeline.rests import Rests
from policies.base import Candidate, Policy, get_policy, is_fixed

if TYPE_CHECKING:
    from gateway.data_plane.known_body import KnownBody

_REJECT: Final = Unsupported.REJECT
_MOST_KNOWN: Final = 256


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """A model's targets with everything that can be prepared before a request comes."""

    model: Model
    policy: Policy
    candidates: tuple[Candidate, ...]
    always: tuple[Backend, ...] | None
    """The policy's order, where that never changes."""
    backends: tuple[Backend, ...]
    """By the candidates' positions."""
    special: frozenset[str]
    """Parameters for which one of the targets may refuse a request, or give a client less than another."""
    patched: frozenset[str]
    """Parameters that one of the targets may not take as they are."""
    least_output: int | None
    """The lowest of the targets' limits for an answer, or of their windows where no limit is known."""
    rests: Rests
    alias: bytes | None = None
    """JSON of the name that answers carry as ``model``; None: the upstream's own (decision 25)."""
    differing: dict[KnownBody, bool] = field(default_factory=dict)
    """For bodies that come again, whether it may matter which target answers; not where it may be their messages."""

    @classmethod
    def build(cls, model: Model, backends: tuple[Backend, ...], *, alias: bytes | None = None) -> Route:
        """Prepare *model*; raises `policies.base.PolicyError` for an unknown strategy."""
        candidates = tuple(Candidate(backend.target, position) for position, backend in enumerate(backends))
        adapters = [backend.adapter for backend in backends]
        bounds = [target.max_output_tokens or target.context_window for target in model.targets]
        return cls(
            model,
            get_policy(model.strategy),
            candidates,
            _ordered(get_policy(model.strategy), candidates, backends) if is_fixed(model.strategy) else None,
            backends,
            frozenset[str]().union(*(adapter.rules.special for adapter in adapters)),
            frozenset[str]().union(*(adapter.rules.patched for adapter in adapters)),
            min((bound for bound in bounds if bound is not None), default=None),
            backends[0].rests.everyone,
            alias,
        )

    def plan(self, call: Call) -> list[Backend]:
        """The backends in the order to try them, never empty.

        Where the request uses what not all of them have, those that cannot take it are left out, and those that would
        give the client less come last unless *call* wants that emulated in the policy's order; those that rest come
        after all others. Raises `UnsupportedParameterError` when none is left, and `RateLimitError` or
        `OverloadedError` when all of them rest.
        """
        ordered = list(self.always or _ordered(self.policy, self.candidates, self.backends))
        if len(ordered) > 1:
            known = call.known
            differs = self.differing.get(known) if known is not None and call.unsupported is not _REJECT else None
            if differs is None:
                differs = self._differs(call)
            if differs:
                ordered = _able(ordered, call)
        if self.rests.latest > call.started:
            return without_resting(ordered, call.started)
        return ordered

    def headers_of(self, target: Target) -> bytes:
        """The static response headers for answers of *target*."""
        return next(backend.headers for backend in self.backends if backend.target is target)

    def _differs(self, call: Call) -> bool:
        """Whether it may matter to *call* which target answers."""
        body = call.body
        special = self.patched if call.unsupported is _REJECT else self.special
        differs = not special.isdisjoint(body) and any(
            name in special and not is_neutral(name, value) for name, value in body.items()
        )
        if not differs and self.least_output is not None:
            differs = (call.output_limit or 0) > self.least_output
        if call.known is not None and call.unsupported is not _REJECT and "messages" not in special:
            if len(self.differing) >= _MOST_KNOWN:
                self.differing.clear()
            self.differing[call.known] = differs
        return differs


def _ordered(policy: Policy, candidates: tuple[Candidate, ...], backends: tuple[Backend, ...]) -> tuple[Backend, ...]:
    return tuple(backends[candidate.position] for candidate in policy(candidates))


def _able(backends: list[Backend], call: Call) -> list[Backend]:
    """Those of *backends* that can take *call*; what was prepared to find that out is kept for the attempts."""
    able: list[tuple[bool, Backend]] = []
    refused: list[ProviderError] = []
    for backend in backends:
        lossy = False
        try:
            prepared = backend.adapter.prepare(call.body, call.operation, call.stream, call.unsupported)
        except ProviderError as failure:
            if failure.kind is FailureKind.UNSUPPORTED_PARAMETER:
                refused.append(failure)
                continue
            # Something else is wrong with the request or the target: its attempt will say what.
        else:
            call.prepared[backend.target] = prepared
            lossy = prepared.lossy
        able.append((lossy, backend))
    if not able:
        raise UnsupportedParameterError(
            " ".join(dict.fromkeys(failure.message for failure in refused)), param=refused[0].param
        )
    if call.unsupported in (Unsupported.AUTO, Unsupported.DROP):
        able.sort(key=lambda pair: pair[0])
    return [backend for _, backend in able]
