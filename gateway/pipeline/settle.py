"""The last step: what happened goes to the metrics, the request log and the log line."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from adapters.target import Target
from adapters.types import Operation, Usage
from gateway.pipeline import adjusted
from gateway.pipeline.call import Attempt, Call
from gateway.storage.request_row import AttemptRow, RequestRow
from gateway.storage.requests import RequestLog
from gateway.telemetry.logging import log_request
from gateway.telemetry.metrics import Answered, Metrics

# The fields of a `Usage`, as a row has them that knows none.
_Figures = tuple[int | None, int | None, int | None, int | None, bool]
# What answers are counted together by: target, operation, model and whether they came as a stream.
_Kind = tuple[Target, Operation, str, bool]
_NO_FIGURES: Final[_Figures] = (None, None, None, None, False)

_log = logging.getLogger(__name__)


class Settlements:
    """Takes calls that are over, and accounts for them by the batch.

    The money of an attempt is booked while it runs; what is done here is for those who look later, and may come a
    twentieth of a second after the answer. Whoever shows the figures flushes first.
    """

    def __init__(self, metrics: Metrics, requests: RequestLog, *, every_seconds: float = 0.05, most: int = 128) -> None:
        self._metrics = metrics
        self._requests = requests
        self._every_seconds = every_seconds
        self._most = most
        self._calls: list[Call] = []
        self._timer: asyncio.TimerHandle | None = None

    def add(self, call: Call, now: float) -> None:
        """Account for *call*, which is over at *now*; runs once for each call, however it ended."""
        call.ended = now
        call.body = {}  # a batch of large bodies would hold on to much memory
        calls = self._calls
        calls.append(call)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._every_seconds, self.flush)
        elif len(calls) >= self._most:
            self.flush()

    def flush(self) -> None:
        """Account now for all calls that are over."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        calls, self._calls = self._calls, []
        rows: list[RequestRow] = []
        answered: dict[_Kind, list[Answered]] = {}
        for call in calls:
            try:
                if len(call.attempts) == 1 and call.status == 200 and call.model is not None and call.authenticated:
                    attempt = call.attempts[0]
                    usage = attempt.hold.usage
                    if (
                        usage is not None
                        and attempt.first_content
                        and not (attempt.failure or call.error_code or attempt.adjustments)
                    ):
                        kind = (attempt.target, call.operation, call.model.pattern or call.model.id, call.stream)
                        gathered = answered.get(kind)
                        if gathered is None:
                            gathered = answered[kind] = []
                        rows.append(_answered(call, attempt, usage, gathered))
                        continue
                self._settle(call, rows)
            except Exception:  # noqa: BLE001 - the edge of a background task: one call must not cost the others' records
                _log.exception("request %s could not be accounted for", call.request_id)
        for kind, gathered in answered.items():
            self._metrics.answered(*kind, gathered)
        self._requests.add(*rows)
        log_request(*rows)

    def _settle(self, call: Call, rows: list[RequestRow]) -> None:
        total = call.ended - call.started
        waited = call.waited_seconds
        for attempt in call.attempts:
            waited += attempt.ended - attempt.started
            self._count(call, attempt)
        model = call.model.id if call.model is not None else ""
        label = call.model.pattern or model if call.model is not None else ""
        self._metrics.request_done(
            call.operation, label, call.status, call.error_code or None, call.stream, total, max(0.0, total - waited)
        )
        if call.authenticated:  # whoever has no key must not be able to fill the request log
            rows.append(_row(call, model, total, waited))

    def _count(self, call: Call, attempt: Attempt) -> None:
        failure, first = attempt.failure, attempt.first_content
        self._metrics.attempt_done(
            attempt.target,
            call.operation,
            failure.kind if failure is not None else None,
            attempt.ended - attempt.started,
            first - attempt.started if first else None,
            attempt.hold.usage,
            attempt.hold.cost_nusd,
        )
        if attempt.adjustments:
            self._metrics.adjusted(attempt.target, attempt.adjustments)


def _answered(call: Call, attempt: Attempt, usage: Usage, gathered: list[Answered]) -> RequestRow:
    """The row of a *call* that its only attempt has answered, as `_row` would make it; its figures are *gathered*."""
    started, key, target, cost = call.started, call.key, attempt.target, attempt.hold.cost_nusd
    total = call.ended - started
    duration = attempt.ended - attempt.started
    overhead = total - duration - call.waited_seconds
    prompt, completion, cached, reasoning = (
        usage.prompt_tokens,
        usage.completion_tokens,
        usage.cached_tokens,
        usage.reasoning_tokens,
    )
    gathered.append(
        (
            total,
            overhead if overhead > 0.0 else 0.0,
            duration,
            attempt.first_content - attempt.started,
            prompt,
            completion,
            cached,
            reasoning,
            cost or 0,
        )
    )
    return RequestRow(
        call.request_id,
        int(call.started_wall * 1000),
        key.id,
        key.organisation_id,
        key.team_id,
        key.user_id,
        call.operation,
        call.model.id if call.model is not None else None,
        target.provider,
        target.name,
        200,
        None,
        call.stream,
        prompt,
        completion,
        cached,
        reasoning,
        usage.estimated,
        cost,
        (attempt.first_content - started) * 1000,
        total * 1000,
        overhead * 1000,
        None,
        call.exchange.peer or None,
        (
            AttemptRow(
                target.name,
                None,
                attempt.status,
                (attempt.started - started) * 1000,
                duration * 1000,
                prompt,
                completion,
                cached,
                reasoning,
                usage.estimated,
                cost,
            ),
        ),
        None,
    )


def _row(call: Call, model: str, total: float, waited: float) -> RequestRow:
    attempts = call.attempts
    last = attempts[-1] if attempts else None
    key = call.key
    usage, cost = _sum(attempts)
    rows = [_attempt_row(call, attempt) for attempt in attempts]
    return RequestRow(
        call.request_id,
        int(call.started_wall * 1000),
        key.id,
        key.organisation_id,
        key.team_id,
        key.user_id,
        call.operation,
        model or None,
        last.target.provider if last else None,
        last.target.name if last else None,
        call.status,
        call.error_code or None,
        call.stream,
        usage.prompt_tokens,
        usage.completion_tokens,
        usage.cached_tokens,
        usage.reasoning_tokens,
        usage.estimated,
        cost,
        (last.first_content - call.started) * 1000 if last and last.first_content else None,
        total * 1000,
        (total - waited) * 1000,
        rows[-1].adjusted if rows else None,
        call.exchange.peer or None,
        rows,
        None,
    )


def _sum(attempts: Sequence[Attempt]) -> tuple[Usage, int | None]:
    """What all attempts together consumed, and what is owed for it as far as prices are known."""
    if len(attempts) == 1 and attempts[0].hold.usage is not None:
        return attempts[0].hold.usage, attempts[0].hold.cost_nusd
    usages = [attempt.hold.usage for attempt in attempts if attempt.hold.usage is not None]
    costs = [attempt.hold.cost_nusd for attempt in attempts if attempt.hold.cost_nusd is not None]
    usage = Usage(
        sum(usage.prompt_tokens for usage in usages),
        sum(usage.completion_tokens for usage in usages),
        sum(usage.cached_tokens for usage in usages),
        sum(usage.reasoning_tokens for usage in usages),
        any(usage.estimated for usage in usages),
    )
    return usage, sum(costs) if costs else None


def _attempt_row(call: Call, attempt: Attempt) -> AttemptRow:
    started, failure, usage = attempt.started, attempt.failure, attempt.hold.usage
    figures: _Figures = _NO_FIGURES
    if usage is not None:
        figures = (
            usage.prompt_tokens,
            usage.completion_tokens,
            usage.cached_tokens,
            usage.reasoning_tokens,
            usage.estimated,
        )
    row = AttemptRow(
        attempt.target.name,
        failure.kind.value if failure is not None else None,
        attempt.status,
        (started - call.started) * 1000,
        (attempt.ended - started) * 1000,
        *figures,
        attempt.hold.cost_nusd,
    )
    if attempt.adjustments:
        row.adjusted = adjusted.as_text(attempt.adjustments)
    return row
