"""The last step: what happened goes to the metrics, the request log and the log line."""

from __future__ import annotations

import asyncio
import logging

from adapters.target import Target
from adapters.types import Operation
from gateway.pipeline.call import Attempt, Call
from gateway.pipeline.log_row import answered_row, row_of
from gateway.storage.request_row import RequestRow
from gateway.storage.requests import RequestLog
from gateway.telemetry.logging import log_requests
from gateway.telemetry.metrics import Answered, Metrics

# What answers are counted together by: target, operation, model and whether they came as a stream.
_Kind = tuple[Target, Operation, str, bool]

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
                        rows.append(answered_row(call, attempt, usage, gathered))
                        continue
                self._settle(call, rows)
            except Exception:  # noqa: BLE001 - the edge of a background task: one call must not cost the others' records
                _log.exception("request %s could not be accounted for", call.request_id)
        for kind, gathered in answered.items():
            self._metrics.answered(*kind, gathered)
        self._requests.add(*rows)
        log_requests(rows)

    def _settle(self, call: Call, rows: list[RequestRow]) -> None:
        total = call.ended - call.started
        waited = call.waited_seconds
        for attempt in call.attempts:
            waited += attempt.ended - attempt.started
            self._count(call, attempt)
        label = call.model.pattern or call.model.id if call.model is not None else ""
        self._metrics.request_done(
            call.operation, label, call.status, call.error_code or None, call.stream, total, max(0.0, total - waited)
        )
        if call.authenticated:  # whoever has no key must not be able to fill the request log
            rows.append(row_of(call))

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
