"""What the gateway counts: one call a request, one an attempt, rendered when somebody asks."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from adapters.types import Adjustment, FailureKind, Operation, Usage
from gateway.__about__ import __version__
from gateway.telemetry import names
from gateway.telemetry.families import FAMILIES
from gateway.telemetry.names import Outcome
from gateway.telemetry.series import Labels, Numbers, Table, add, observe, render
from gateway.telemetry.snapshots import Snapshots

if TYPE_CHECKING:
    from adapters.target import Target

Reader = Callable[[], Iterable[tuple[Labels, float]]]
Answered = tuple[float, float, float, float, int, int, int, int, int]
"""Of a request: the seconds it took, those that the gateway itself took, those of its attempt and those until the
first content; the tokens of its prompt and of the completion, and of these the cached ones and those of reasoning; the
cost in nano-USD."""

_REQUEST_BUCKETS, _OVERHEAD_BUCKETS = names.REQUEST_BUCKETS, names.OVERHEAD_BUCKETS
_INFERENCE_BUCKETS = names.INFERENCE_BUCKETS

_GAUGES = {family.name: family for family in FAMILIES if family.type == "gauge"}


class Metrics:
    """The counters of one worker, and those of its siblings when it is asked to render.

    Labels come from a closed set: *models* are the configured ids, any other name a client sends is counted as
    ``other``. Targets come from the configuration by themselves.
    """

    def __init__(self, models: Collection[str] = (), *, snapshots: Snapshots | None = None) -> None:
        self._table = Table(FAMILIES)
        self._models = frozenset(models)
        self._snapshots = snapshots
        self._requests: dict[tuple[str, str | None, bool, int, str | None], _RequestSeries] = {}
        self._attempts: dict[tuple[Target, Operation, FailureKind | None], _AttemptSeries] = {}
        self._readers: dict[str, list[Reader]] = {}
        self.watch(names.BUILD_INFO, lambda: [((__version__,), 1)])

    def request_done(
        self,
        endpoint: str,
        model: str | None,
        status: int,
        error_code: str | None,
        stream: bool,
        duration_seconds: float,
        overhead_seconds: float,
    ) -> None:
        """Count one answered request. *endpoint* is one of `ENDPOINTS`; *model* is what the client asked for."""
        key = (endpoint, model, stream, status, error_code)
        series = self._requests.get(key) or self._request_series(*key)
        series.count[0] += 1
        numbers = series.duration
        numbers[bisect_left(_REQUEST_BUCKETS, duration_seconds)] += 1
        numbers[-1] += duration_seconds
        numbers = series.overhead
        numbers[bisect_left(_OVERHEAD_BUCKETS, overhead_seconds)] += 1
        numbers[-1] += overhead_seconds

    def answered(
        self, target: Target, operation: Operation, model: str | None, stream: bool, requests: Collection[Answered]
    ) -> None:
        """Count *requests* that their only attempt answered, as `request_done` and `attempt_done` would one by one."""
        key = (operation, model, stream, 200, None)
        of_requests = self._requests.get(key) or self._request_series(*key)
        of_attempts = self._attempts.get((target, operation, None)) or self._attempt_series(target, operation, None)
        totals, overheads, durations, firsts, prompts, completions, cached, reasoning, costs = zip(
            *requests, strict=True
        )
        of_requests.count[0] += len(requests)
        observe(of_requests.duration, _REQUEST_BUCKETS, totals)
        observe(of_requests.overhead, _OVERHEAD_BUCKETS, overheads)
        of_attempts.outcome[0] += len(requests)
        observe(of_attempts.duration, _INFERENCE_BUCKETS, durations)
        observe(of_attempts.first_chunk, _INFERENCE_BUCKETS, firsts)
        of_attempts.input_tokens[0] += sum(prompts)
        of_attempts.output_tokens[0] += sum(completions)
        of_attempts.cached_tokens[0] += sum(cached)
        of_attempts.reasoning_tokens[0] += sum(reasoning)
        of_attempts.cost[0] += sum(costs)

    def attempt_done(
        self,
        target: Target,
        operation: Operation,
        failure: FailureKind | None,
        duration_seconds: float,
        ttft_seconds: float | None = None,
        usage: Usage | None = None,
        cost_nusd: int | None = None,
        *,
        outcome: Outcome | None = None,
    ) -> None:
        """Count one attempt that is over. *outcome* follows from *failure* unless it is given."""
        series = self._attempts.get((target, operation, failure)) or self._attempt_series(target, operation, failure)
        numbers = series.duration
        numbers[bisect_left(_INFERENCE_BUCKETS, duration_seconds)] += 1
        numbers[-1] += duration_seconds
        if ttft_seconds is not None:
            numbers = series.first_chunk
            numbers[bisect_left(_INFERENCE_BUCKETS, ttft_seconds)] += 1
            numbers[-1] += ttft_seconds
        if outcome is None:
            series.outcome[0] += 1
        else:
            self._table.series(names.ATTEMPTS, target.provider, target.name, outcome)[0] += 1
        if usage is not None:
            series.input_tokens[0] += usage.prompt_tokens
            series.output_tokens[0] += usage.completion_tokens
            if usage.cached_tokens:
                series.cached_tokens[0] += usage.cached_tokens
            if usage.reasoning_tokens:
                series.reasoning_tokens[0] += usage.reasoning_tokens
        if cost_nusd:
            series.cost[0] += cost_nusd

    def retried(self, model: str, target: Target, reason: FailureKind) -> None:
        """Count a further try at the target that just failed with *reason*."""
        self._table.series(names.RETRIES, self._known(model), target.name, target.name, reason)[0] += 1

    def fell_back(self, model: str, failed: Target, following: Target, reason: FailureKind) -> None:
        """Count a move from the target that *failed* to the one that is tried next."""
        self._table.series(names.FALLBACKS, self._known(model), failed.name, following.name, reason)[0] += 1

    def adjusted(self, target: Target, adjustments: Iterable[Adjustment]) -> None:
        """Count what was changed in a request; names the provider file does not know are one series."""
        for adjustment in adjustments:
            param = adjustment.param if adjustment.param in target.spec.params else names.OTHER
            self._table.series(names.ADJUSTED, target.provider, param, adjustment.action)[0] += 1

    def reconfigured(self, models: Collection[str]) -> None:
        """Know *models* too; those of earlier configurations stay, as requests under way may still be for them."""
        self._models = self._models.union(models)
        # Only short cuts to series, which stay; targets of earlier configurations would stay with them.
        self._attempts.clear()

    def watch(self, name: str, read: Reader) -> None:
        """Have *read* called at every scrape for the (labels, value) pairs of a gauge or counter kept elsewhere."""
        self._readers.setdefault(name, []).append(read)

    def render(self) -> bytes:
        """The text of ``/metrics``, summed over all workers."""
        own = self._now()
        series = {name: of_family for name, of_family in own.items() if name not in _GAUGES}
        gauges = [own]
        for snapshot in self._snapshots.of_others() if self._snapshots is not None else ():
            for name in series.keys() & snapshot.counters.keys():
                add(series[name], snapshot.counters[name])
            gauges.append(snapshot.gauges)
        for name, family in _GAUGES.items():
            values: dict[Labels, list[float]] = {}
            for of_worker in gauges:
                for labels, numbers in of_worker.get(name, {}).items():
                    values.setdefault(labels, []).append(numbers[0])
            series[name] = {labels: [family.combine(found)] for labels, found in values.items()}
        return render(FAMILIES, series)

    def publish(self, *, last: bool = False) -> None:
        """Let the other workers see this one's figures; the *last* time without gauges, which end with the worker.

        A directory that cannot be written costs the others a stale figure, nothing else.
        """
        if self._snapshots is not None:
            own = self._now()
            gauges = {} if last else {name: own[name] for name in _GAUGES}
            with suppress(OSError):
                self._snapshots.write({name: own[name] for name in own if name not in _GAUGES}, gauges)

    def _now(self) -> dict[str, dict[Labels, Numbers]]:
        series = self._table.copy()
        for name, readers in self._readers.items():
            for read in readers:
                series[name].update({labels: [value] for labels, value in read()})
        return series

    def _known(self, model: str | None) -> str:
        return model if model is not None and model in self._models else names.OTHER

    def _request_series(
        self, endpoint: str, model: str | None, stream: bool, status: int, error_code: str | None
    ) -> _RequestSeries:
        # Kept under the label values, never under what a client sent, or the table would grow with every typo.
        endpoint = endpoint if endpoint in names.ENDPOINTS else names.OTHER
        key = (endpoint, self._known(model), stream, status, error_code)
        if key not in self._requests:
            self._requests[key] = _RequestSeries(self._table, *key)
        return self._requests[key]

    def _attempt_series(self, target: Target, operation: Operation, failure: FailureKind | None) -> _AttemptSeries:
        series = self._attempts[target, operation, failure] = _AttemptSeries(self._table, target, operation, failure)
        return series


class _RequestSeries:
    """The series that requests to one model over one endpoint add to when they end alike."""

    __slots__ = ("count", "duration", "overhead")

    def __init__(
        self, table: Table, endpoint: str, model: str, stream: bool, status: int, error_code: str | None
    ) -> None:
        labels = (endpoint, model, "true" if stream else "false")
        self.count = table.series(names.REQUESTS, endpoint, model, str(status), error_code or "")
        self.duration = table.series(names.REQUEST_DURATION, *labels)
        self.overhead = table.series(names.OVERHEAD, *labels)


class _AttemptSeries:
    """The series that attempts at one target add to when they end alike."""

    __slots__ = (
        "cached_tokens",
        "cost",
        "duration",
        "first_chunk",
        "input_tokens",
        "outcome",
        "output_tokens",
        "reasoning_tokens",
    )

    def __init__(self, table: Table, target: Target, operation: Operation, failure: FailureKind | None) -> None:
        provider, model = target.provider, target.model
        inference = (
            names.OPERATION_NAMES[operation],
            target.spec.telemetry_name or target.spec.id,
            model,
            failure or "",
        )
        outcome = Outcome.OK if failure is None else names.OUTCOMES[failure]
        self.duration = table.series(names.INFERENCE_DURATION, *inference)
        self.first_chunk = table.series(names.FIRST_CHUNK, *inference)
        self.outcome = table.series(names.ATTEMPTS, provider, target.name, outcome)
        self.input_tokens = table.series(names.INPUT_TOKENS, provider, model)
        self.output_tokens = table.series(names.OUTPUT_TOKENS, provider, model)
        self.cached_tokens = table.series(names.CACHED_TOKENS, provider, model)
        self.reasoning_tokens = table.series(names.REASONING_TOKENS, provider, model)
        self.cost = table.series(names.COST, provider, model, "")
