"""What the request log keeps of a call, and of each of its attempts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from adapters.types import Usage
from gateway.pipeline import adjusted
from gateway.pipeline.call import Attempt, Call
from gateway.storage.request_row import AttemptRow, RequestRow
from gateway.telemetry.metrics import Answered

# The fields of a `Usage`, as a row has them that knows none.
_Figures = tuple[int | None, int | None, int | None, int | None, bool]
_NO_FIGURES: Final[_Figures] = (None, None, None, None, False)


def row_of(call: Call) -> RequestRow:
    """The row of a *call* that is over, whatever became of it."""
    attempts = call.attempts
    last = attempts[-1] if attempts else None
    key = call.key
    total = call.ended - call.started
    waited = call.waited_seconds + sum(attempt.ended - attempt.started for attempt in attempts)
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
        call.model.id if call.model is not None else None,
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


def answered_row(call: Call, attempt: Attempt, usage: Usage, gathered: list[Answered]) -> RequestRow:
    """The row of a *call* that its only attempt has answered, as `row_of` would make it; its figures are *gathered*.

    Nearly every call is one of these, and this takes half the time.
    """
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
