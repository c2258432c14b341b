"""The road every request takes: admit, plan, then one attempt after another until one answers."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine, Sequence
from typing import Any

from adapters.context import may_hold_more
from adapters.errors import ProviderError
from adapters.target import Target
from adapters.types import FailureKind
from gateway.pipeline.admit import admit
from gateway.pipeline.around_rests import next_of, resting_failures
from gateway.pipeline.attempt import run_attempt
from gateway.pipeline.backend import Backend
from gateway.pipeline.call import Call, stopping
from gateway.pipeline.outcome import judge, to_error
from gateway.pipeline.plan import Route
from gateway.pipeline.reply import SSE, answer_headers, early_headers, send_error
from gateway.pipeline.stream_out import StreamOut
from gateway.services import Configuration, Services
from gateway.upstream.local import fair_key
from policies.retry import Decision, Situation, Step, decide


def serve(call: Call, services: Services, configuration: Configuration) -> Coroutine[Any, Any, None]:
    """Admit *call*, and give what answers it by *configuration* when it is awaited, whatever its endpoint.

    Raises `GatewayError` for what the client can be told at once. Whoever calls this takes *call* out of those that
    are under way.
    """
    admit(call, services)
    assert call.model is not None
    route = configuration.backends.route(call.model)
    if configuration.backends.queues:
        fair_key.set(call.key.id)
    if call.stream:
        return _streamed(call, route, configuration.settings.server.stream_keepalive, services)
    return _attempts(call, route, None, services)


async def _streamed(call: Call, route: Route, silence_seconds: float, services: Services) -> None:
    now = services.clock
    out = StreamOut(call.exchange, services.deadlines, now, silence_seconds, lambda: _stream_head(call, route, now()))
    try:
        await _attempts(call, route, out, services)
    except asyncio.CancelledError:
        if not (call.ending and out.opened):
            raise
        # Only comments have been sent, but the status is spent: the reason goes where a client will find it.
        error = to_error(stopping())
        call.status, call.error_code = 200, error.code or ""
        out.fail(error, call.request_id, None)
    finally:
        out.close()


async def _attempts(call: Call, route: Route, out: StreamOut | None, services: Services) -> None:
    """Try the targets in the policy's order, each as often as `policies.retry` allows."""
    waiting = route.plan(call)
    backend: Backend | None = waiting.pop(0)
    tries = 0
    while backend is not None:
        tries += 1
        if waiting:
            call.others = True
        try:
            await run_attempt(call, route, backend, out, services)
        except ProviderError as failure:
            # The attempt keeps its failure, and frames would keep the attempt, until the garbage collector comes.
            failure.__traceback__ = failure.__context__ = None
            now = services.clock()
            if failure.kind is FailureKind.CONTEXT_LENGTH:
                waiting = [other for other in waiting if may_hold_more(other.target, backend.target)]
            following = next_of(waiting, now)
            decision = _decide(call, route, failure, tries, backend, following, now)
            if decision.step is Step.STOP:
                break
            call.others = False
            if decision.step is Step.NEXT and following is not None:
                services.metrics.fell_back(route.model.id, backend.target, following.target, failure.kind)
                waiting.remove(following)
                backend, tries = following, 0
            else:
                services.metrics.retried(route.model.id, backend.target, failure.kind)
            if decision.wait_seconds:
                await asyncio.sleep(decision.wait_seconds)
                call.waited_seconds += decision.wait_seconds
        else:
            call.status = 200
            return
    _refuse(call, out, resting_failures(waiting, services.clock()))


def _decide(
    call: Call,
    route: Route,
    failure: ProviderError,
    tries: int,
    backend: Backend,
    following: Backend | None,
    now: float,
) -> Decision:
    limit = min(route.model.total_seconds, call.time_limit_seconds or route.model.total_seconds)
    situation = Situation(
        failure=failure,
        tries_on_target=tries,
        tries_in_request=len(call.attempts),
        another_target=following is not None,
        another_key=backend.has_another_key(now),
        seconds_left=call.started + limit - now,
        client_retries=call.client_retries,
        another_rests_seconds=following.rests_for(now) if following is not None else 0.0,
    )
    # Jitter spreads load; nothing secret depends on it.
    return decide(situation, tries_per_target=route.model.attempts, jitter=random.random())  # noqa: S311


def _refuse(call: Call, out: StreamOut | None, rested: Sequence[tuple[Target, ProviderError]]) -> None:
    """Every target failed or rests: say why, in the status while it is unspent, else in the stream."""
    verdict = judge(call.attempts, rested)
    call.error_code = verdict.error.code or ""
    if out is not None and out.opened:
        call.status = 200
        out.fail(verdict.error, call.request_id, verdict.provider, verdict.upstream_status)
    else:
        call.status = verdict.error.status
        send_error(call, verdict.error, verdict)


def _stream_head(call: Call, route: Route, now: float) -> bytes:
    attempt = call.last_attempt
    if attempt is None or not attempt.first_content:
        return early_headers(call, call.model.id if call.model is not None else route.model.id, now)
    return answer_headers(call, attempt, route.headers_of(attempt.target), SSE, now)
