"""What would become of a request: which targets, in which order and why, changed how, at what cost. Sends nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum
from typing import TYPE_CHECKING, Final, cast

from adapters.adapter import Prepared, refuse_operation
from adapters.catalogue.record import Life
from adapters.draft import Unsupported
from adapters.errors import ProviderError
from adapters.target import Target
from adapters.types import Adjustment, Body, Operation
from gateway.catalog import Catalog, Model
from gateway.config.schema import Settings
from gateway.data_plane.endpoint import Endpoint
from gateway.data_plane.plane import ENDPOINTS
from gateway.errors import UnsupportedParameterError
from gateway.estimate import Count, Estimate, estimate
from gateway.pipeline.backend import Backend
from gateway.pipeline.backends import Backends
from gateway.pipeline.call import Call
from gateway.pipeline.plan import Route
from gateway.upstream.base import RequestHead, Sending, UpstreamResponse

if TYPE_CHECKING:
    from gateway.data_plane.exchange import Exchange

_PROMPTS: Final = {"input": Operation.EMBEDDINGS, "prompt": Operation.COMPLETIONS}
_STATES: Final = {
    Life.PREVIEW: "a preview",
    Life.DEPRECATED: "deprecated",
    Life.ENDING: "about to be retired",
    Life.DOUBTED: "perhaps no longer served",
    Life.RETIRED: "retired",
}


class Verdict(StrEnum):
    """Whether a target would be asked."""

    ELIGIBLE = "eligible"
    LOSSY = "lossy"  # only by an emulation that may give less, so after those that need none
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Explained:
    """One target's part."""

    target: Target
    place: int | None
    """From 1, in the order of trying; None: it is not tried."""
    verdict: Verdict
    reason: str
    """Why it stands there, or why it is refused."""
    adjustments: tuple[Adjustment, ...] = ()
    shape: str | None = None
    """The parameter on whose account several requests, or another one, are sent in place of this."""
    body: bytes = b""
    """What would be sent; empty where *shape* decides."""
    estimate: Estimate | None = None
    remarks: tuple[str, ...] = ()
    signals: Mapping[str, float] = field(default_factory=dict)
    """What a policy went by, where it goes by figures."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The whole answer: targets in the order of trying, then those that are not tried."""

    model: Model
    strategy: str
    operation: Operation
    unsupported: Unsupported
    targets: tuple[Explained, ...]
    refusal: UnsupportedParameterError | ProviderError | None
    """What the client would be told where no target is left."""


def endpoint_for(body: Body) -> Endpoint:
    """The endpoint that a request with *body* is meant for, by where its prompt stands."""
    operation = next((_PROMPTS[name] for name in _PROMPTS if name in body and "messages" not in body), Operation.CHAT)
    return next(endpoint for endpoint in ENDPOINTS if endpoint.operation is operation)


def explain(
    settings: Settings,
    catalog: Catalog,
    model: Model,
    body: Body,
    *,
    today: date,
    unsupported: Unsupported | None = None,
    count: Count | None = None,
) -> Explanation:
    """What would become of *body*; raises `GatewayError` for a body that a client would be refused outright.

    Without *count* the prompt's tokens are estimated from its bytes.
    """
    endpoint = endpoint_for(body)
    # Nobody is at the other end, and nothing that is asked for here would tell them anything.
    call = Call(cast("Exchange", None), endpoint.operation, 0.0, 0.0, body=dict(body), model=model)
    call.unsupported = unsupported or model.unsupported
    endpoint.read(call)
    route = Backends(settings, catalog, _Nowhere(), {}).route(model)
    order, refusal = _order(route, call)
    explained = [_explained(route, backend, call, order, today, count) for backend in route.backends]
    explained.sort(key=lambda one: (one.place is None, one.place or 0))
    targets = _numbered(explained)
    if all(one.place is None for one in targets) and refusal is None:
        refusal = _failure(route.backends[0], call)
    return Explanation(model, model.strategy, call.operation, call.unsupported, targets, refusal)


def _order(route: Route, call: Call) -> tuple[list[Backend], UnsupportedParameterError | ProviderError | None]:
    try:
        return list(route.plan(call)), None
    except UnsupportedParameterError as error:
        return [], error


def _explained(
    route: Route, backend: Backend, call: Call, order: list[Backend], today: date, count: Count | None
) -> Explained:
    target = backend.target
    remarks = tuple(_remarks(target, today))
    prepared = _prepare(backend, call)
    if isinstance(prepared, ProviderError):
        return Explained(target, None, Verdict.REFUSED, prepared.message, remarks=remarks)
    place = order.index(backend) + 1 if backend in order else None
    reason = f"{route.model.strategy}: {_standing(route, backend)}"
    if prepared.lossy:
        reason += "; what it lacks is emulated, so one that has it goes first"
    return Explained(
        target=target,
        place=place,
        verdict=Verdict.LOSSY if prepared.lossy else Verdict.ELIGIBLE,
        reason=reason,
        adjustments=prepared.adjustments,
        shape=prepared.shape.param if prepared.shape is not None else None,
        body=prepared.body,
        estimate=estimate(target, call, prepared, count),
        remarks=remarks,
    )


def _standing(route: Route, backend: Backend) -> str:
    """What the policy goes by, of one target."""
    if route.model.strategy == "weighted":
        weight = backend.target.weight
        total = sum(other.target.weight for other in route.backends)
        return f"drawn first for {weight / total:.0%} of the requests" if weight else "after all that have a weight"
    return f"number {route.backends.index(backend) + 1} of {len(route.backends)} in the configuration"


def _prepare(backend: Backend, call: Call) -> Prepared | ProviderError:
    if backend.head(call.operation, 0.0) is None:
        return refuse_operation(backend.target, call.operation)
    try:
        return backend.adapter.prepare(call.body, call.operation, call.stream, call.unsupported)
    except ProviderError as error:
        return error


def _failure(backend: Backend, call: Call) -> ProviderError | None:
    failure = _prepare(backend, call)
    return failure if isinstance(failure, ProviderError) else None


def _numbered(explained: list[Explained]) -> tuple[Explained, ...]:
    """Places without the gaps that targets leave which are in the order and will refuse when it is their turn."""
    tried = [one for one in explained if one.place is not None]
    rest = [one for one in explained if one.place is None]
    return (*(replace(one, place=place) for place, one in enumerate(tried, 1)), *rest)


def _remarks(target: Target, today: date) -> list[str]:
    record = target.record
    if record is None:
        return []
    remarks = []
    life = record.life(today)
    if life is not Life.SERVED:
        day = f" ({record.retired_on})" if record.retired_on is not None else ""
        remarks.append(f"the model is {_STATES[life]}{day}")
    if record.long_prompts_cost_more:
        remarks.append("long prompts cost more than the price that is reckoned with")
    return remarks


class _Nowhere:
    """The client of a dry run: a request through it would be a mistake of ours."""

    async def send(
        self, head: RequestHead, body: bytes, extra_headers: bytes = b"", sending: Sending | None = None
    ) -> UpstreamResponse:
        raise AssertionError("a dry run sends nothing")

    async def aclose(self) -> None:
        """There is nothing to close."""
