"""One call to one target: the hold, the request, and its end, which is an answer, a failure or another way."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from adapters.adapter import refuse_operation
from adapters.draft import AnswerNeeds, asked_in, of_the_words
from adapters.errors import ProviderError
from adapters.types import FailureKind, Usage
from gateway.pipeline.backend import Backend
from gateway.pipeline.call import Attempt, Call, stopping
from gateway.pipeline.child_calls import find_rescue
from gateway.pipeline.clock import AttemptClock
from gateway.pipeline.delivery import deliver_stream, deliver_whole, resolve_hold
from gateway.pipeline.plan import Route
from gateway.pipeline.shaped import ShapedCalls
from gateway.pipeline.stream_out import StreamOut
from gateway.pipeline.whole import MAX_ANSWER_BYTES, read_refusal
from gateway.services import Services
from gateway.upstream.base import RequestHead

_log = logging.getLogger(__name__)

# Failures that stay until somebody changes a key, an account, a certificate or a machine.
_OPERATORS_BUSINESS: Final = frozenset(
    {FailureKind.AUTH, FailureKind.PAYMENT, FailureKind.TLS, FailureKind.NOT_FOUND, FailureKind.NOT_LOADED}
)


async def run_attempt(call: Call, route: Route, backend: Backend, out: StreamOut | None, services: Services) -> None:
    """Answer *call* from *backend*, completely; raises `ProviderError` when another target may still try.

    The hold is resolved exactly once, however this ends. For a stream, it ends with the stream.
    """
    now = services.clock
    target = backend.target
    attempt = Attempt(target, services.ledger.hold(call.key.id, target, call.choices), now())
    call.attempts.append(attempt)
    clock = response = usage = head = None
    lease = backend.concurrency
    try:
        head = backend.head(call.operation, attempt.started)
        if head is None:
            raise refuse_operation(target, call.operation)
        if lease is not None and not lease.take():
            lease = None
            raise ProviderError(
                FailureKind.NO_CAPACITY, f"{target.provider} has all the requests it may have.", sent=False
            )
        prepared = call.prepared.get(target) or backend.prepare(call)
        attempt.adjustments = prepared.adjustments
        limits = route.model
        seconds = limits.total_seconds
        if call.time_limit_seconds is not None:
            seconds = min(seconds, call.time_limit_seconds)
        total = call.started + seconds
        clock = AttemptClock(services.deadlines, now, call.task, attempt.started + limits.first_event_seconds, total)
        if prepared.shape is not None:
            calls = ShapedCalls(call, attempt, backend, head, clock, limits.first_event_seconds, services)
            needs = of_the_words(prepared.needs)
            response = await calls.begin(prepared.shape, asked_in(needs, call.body))
        else:
            hop = services.hop_header_after(call.hops) if call.hops else services.hop_header
            response = await backend.upstream.send(head, prepared.body, hop, attempt)
            attempt.status, needs = response.status, prepared.needs
            seen = backend.limits
            if seen is not None and (attempt.started >= seen.due or response.status != 200):
                seen.note(response.headers, attempt.started)
        try:
            if response.status != 200:
                raise backend.adapter.refusal(response.status, response.headers, await read_refusal(response))
            if out is not None:
                usage = await deliver_stream(call, attempt, route, backend, out, clock, response, needs, now)
            else:
                raw = await response.read(MAX_ANSWER_BYTES)
                usage = deliver_whole(call, attempt, route, backend, response, raw, needs, now)
        except ProviderError as failure:
            response.close()
            usage = await _rescued(call, attempt, route, backend, head, out, clock, failure, needs, services)
    except ProviderError as failure:
        if failure.kind is FailureKind.INTERRUPTED:
            failure.kind = FailureKind.RESET  # nothing was passed on: it may be tried again
        attempt.failure = failure
        raise
    except asyncio.CancelledError:
        if clock is None or not clock.expired or _others_cancelled():
            attempt.failure = stopping() if call.ending else ProviderError(FailureKind.CLIENT_LEFT, "The client left.")
            raise
        attempt.failure = clock.error(target.provider)
        raise attempt.failure from None
    finally:
        attempt.ended = now()
        if clock is not None:
            clock.stop()
        if response is not None:
            response.close()
        if lease is not None:
            lease.give_back()
        if attempt.hold.resolution is None:
            resolve_hold(call, attempt, usage)
        if attempt.failure is not None:
            backend.failed(attempt.failure, call.operation, head, attempt.ended)
            _log_failure(call, attempt, attempt.failure)


async def _rescued(
    call: Call,
    attempt: Attempt,
    route: Route,
    backend: Backend,
    head: RequestHead,
    out: StreamOut | None,
    clock: AttemptClock,
    failure: ProviderError,
    needs: AnswerNeeds | None,
    services: Services,
) -> Usage | None:
    """Answer all the same what ended in *failure*, where there is a way; else the failure is raised."""
    found, body, needs = None, asked_in(needs, call.body), of_the_words(needs)
    if attempt.tally is None and not attempt.first_content:
        found = find_rescue(backend.adapter, call, body, failure, call.operation, stream=call.stream)
    if found is None:
        raise failure
    rescue, shape = found
    calls = ShapedCalls(call, attempt, backend, head, clock, route.model.first_event_seconds, services)
    response = await calls.begin_again(rescue, shape, failure, body)
    try:
        if out is not None:
            usage = await deliver_stream(call, attempt, route, backend, out, clock, response, needs, services.clock)
        else:
            raw = await response.read(MAX_ANSWER_BYTES)
            usage = deliver_whole(call, attempt, route, backend, response, raw, needs, services.clock)
    finally:
        response.close()
    rescue.worked()
    return usage


def _others_cancelled() -> bool:
    """Whether somebody else than our own clock has cancelled this task as well."""
    task = asyncio.current_task()
    return task is not None and task.uncancel() > 0


def _log_failure(call: Call, attempt: Attempt, failure: ProviderError) -> None:
    level = logging.WARNING if failure.kind in _OPERATORS_BUSINESS else logging.DEBUG
    _log.log(
        level,
        "%s: attempt at %s: %s: %s %s",
        call.request_id,
        attempt.target.name,
        failure.kind.value,
        failure.message,
        failure.detail,
    )
