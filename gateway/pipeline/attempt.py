"""One call to one target: the hold, the request, the answer or the stream, and what is owed for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from adapters import answers
from adapters.adapter import refuse_operation
from adapters.draft import AnswerNeeds, asked_in, of_the_words
from adapters.embeddings import with_encoding
from adapters.errors import ProviderError
from adapters.pricing import estimated_tokens
from adapters.types import FailureKind, Operation, Usage
from gateway.pipeline.backend import Backend
from gateway.pipeline.call import Attempt, Call, stopping
from gateway.pipeline.clock import AttemptClock
from gateway.pipeline.outcome import to_error
from gateway.pipeline.plan import Route
from gateway.pipeline.relay import StreamRelay
from gateway.pipeline.reply import JSON, answer_headers
from gateway.pipeline.shaped import ShapedCalls, find_rescue
from gateway.pipeline.stream_out import StreamOut
from gateway.pipeline.tally import owes_nothing
from gateway.pipeline.unmarked import Unmarked
from gateway.pipeline.whole import MAX_ANSWER_BYTES, is_stream, read_refusal, read_whole, refuse_page, said_nothing
from gateway.services import Services
from gateway.upstream.base import RequestHead, UpstreamResponse

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
                usage = await _stream(call, attempt, route, backend, out, clock, response, needs, now)
            else:
                raw = await response.read(MAX_ANSWER_BYTES)
                usage = _whole(call, attempt, route, backend, response, raw, needs, now)
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
            _resolve(call, attempt, usage)
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
            usage = await _stream(call, attempt, route, backend, out, clock, response, needs, services.clock)
        else:
            raw = await response.read(MAX_ANSWER_BYTES)
            usage = _whole(call, attempt, route, backend, response, raw, needs, services.clock)
    finally:
        response.close()
    rescue.worked()
    return usage


def _others_cancelled() -> bool:
    """Whether somebody else than our own clock has cancelled this task as well."""
    task = asyncio.current_task()
    return task is not None and task.uncancel() > 0


def _whole(
    call: Call,
    attempt: Attempt,
    route: Route,
    backend: Backend,
    response: UpstreamResponse,
    raw: bytes,
    needs: AnswerNeeds | None,
    now: Callable[[], float],
) -> Usage | None:
    """Check an answer that came in one piece, *raw*, and send it."""
    whole = read_whole(raw, response, backend.adapter, call.operation, needs, call.body)
    body, usage = whole.body, whole.usage
    if call.encoding and whole.answer is not None:
        body = _encoded(call, body, whole.answer, attempt.target.provider)
    if (
        whole.answer is not None
        and call.others
        and call.operation is Operation.CHAT
        and answers.says_nothing(whole.answer)
    ):
        raise said_nothing(attempt.target.provider, usage)  # the others may know more
    if usage is None:
        attempt.text_bytes = whole.text_bytes
    attempt.first_content = now()
    # The money is booked before the end of the answer is released.
    if usage is not None and attempt.tally is None:
        attempt.hold.settle(usage)
    else:
        _resolve(call, attempt, usage)
    if route.alias is not None:
        body = answers.with_model(body, route.alias)
    headers = answer_headers(call, attempt, backend.headers, JSON, attempt.first_content)
    call.exchange.respond(200, headers, body)
    return usage


def _encoded(call: Call, body: bytes, answer: answers.Answer, provider: str) -> bytes:
    try:
        return with_encoding(body, answer.data, call.encoding)
    except answers.UnreadableError:
        raise ProviderError(FailureKind.MALFORMED, f"{provider} answered with vectors that cannot be read.") from None


async def _stream(
    call: Call,
    attempt: Attempt,
    route: Route,
    backend: Backend,
    out: StreamOut,
    clock: AttemptClock,
    response: UpstreamResponse,
    needs: AnswerNeeds | None,
    now: Callable[[], float],
) -> Usage | None:
    """Relay a stream to its end; what breaks after the first content is told to the client here."""
    provider, marked = attempt.target.provider, is_stream(response)
    if not marked:
        refuse_page(response, provider)
    relay = StreamRelay(
        call,
        attempt,
        out,
        clock,
        response,
        now=now,
        stall_seconds=route.model.stall_seconds,
        error_of=backend.adapter.error,
        settle=lambda usage: _resolve(call, attempt, usage),
        repair=backend.adapter.repair.stream(call.operation, needs, call.body),
        model=route.alias,
        progress=backend.adapter.progress,
        usage_per_choice=backend.adapter.usage_per_choice,
    )
    call.relay = relay
    try:
        response.stream(relay if marked else Unmarked(relay, call.operation, provider))
        if not relay.done.done():
            await relay.done
        if relay.failure is not None:
            if not relay.committed:
                raise relay.failure
            attempt.failure = relay.failure
            error = to_error(relay.failure)
            call.error_code = error.code or ""
            _resolve(call, attempt, relay.usage)
            out.fail(error, call.request_id, provider, relay.failure.status)
        return relay.usage
    finally:
        relay.count()
        call.relay = None
        call.exchange.on_flow = None
        if relay.committed and attempt.hold.resolution is None:
            _resolve(call, attempt, relay.usage)


def _resolve(call: Call, attempt: Attempt, usage: Usage | None) -> None:
    """Settle from usage, or from what was seen, or give back (reliability 6.5)."""
    failure, hold = attempt.failure, attempt.hold
    if attempt.tally is not None:
        attempt.tally.resolve(hold)
    elif usage is not None:
        hold.settle(usage)
    elif failure is not None and failure.used is not None:
        hold.settle(failure.used)
    elif not attempt.sent or owes_nothing(attempt.status, failure):
        hold.void()
    elif attempt.counts is not None and (counted := attempt.counts.usage()) is not None:
        hold.settle(counted)
    else:
        prompt = estimated_tokens(call.prompt_bytes())
        hold.estimate(Usage(prompt, estimated_tokens(attempt.text_bytes), estimated=True))


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
