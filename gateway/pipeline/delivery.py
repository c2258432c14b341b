"""What an attempt's answer comes to: it is checked, passed on to the client, and the hold is resolved."""

from __future__ import annotations

from collections.abc import Callable

from adapters import answers
from adapters.draft import AnswerNeeds
from adapters.embeddings import with_encoding
from adapters.errors import ProviderError
from adapters.pricing import estimated_tokens
from adapters.types import FailureKind, Operation, Usage
from gateway.pipeline.backend import Backend
from gateway.pipeline.call import Attempt, Call
from gateway.pipeline.clock import AttemptClock
from gateway.pipeline.outcome import to_error
from gateway.pipeline.plan import Route
from gateway.pipeline.relay import StreamRelay
from gateway.pipeline.reply import JSON, answer_headers
from gateway.pipeline.stream_out import StreamOut
from gateway.pipeline.tally import owes_nothing
from gateway.pipeline.unmarked import Unmarked
from gateway.pipeline.whole import is_stream, read_whole, refuse_page, said_nothing
from gateway.upstream.base import UpstreamResponse


def deliver_whole(
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
        resolve_hold(call, attempt, usage)
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


async def deliver_stream(
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
        settle=lambda usage: resolve_hold(call, attempt, usage),
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
            resolve_hold(call, attempt, relay.usage)
            out.fail(error, call.request_id, provider, relay.failure.status)
        return relay.usage
    finally:
        relay.count()
        call.relay = None
        call.exchange.on_flow = None
        if attempt.hold.resolution is None and relay.committed:
            resolve_hold(call, attempt, relay.usage)


def resolve_hold(call: Call, attempt: Attempt, usage: Usage | None) -> None:
    """Settle from usage, or from what was seen, or give back."""
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
