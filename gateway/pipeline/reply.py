"""The headers of an answer: who answered, what was changed, where the time went."""

from __future__ import annotations

from gateway.data_plane.errors import error_body, error_headers, render_headers
from gateway.errors import GatewayError
from gateway.pipeline import adjusted
from gateway.pipeline.call import Attempt, Call
from gateway.pipeline.outcome import Verdict

JSON = b"content-type: application/json\r\n"
SSE = b"content-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\nx-accel-buffering: no\r\n"

# ``gw`` is what the gateway took, ``upstream`` the time to the upstream's first byte; milliseconds.
_TIMING = b"server-timing: gw;dur=%.1f, queue;dur=0.0, upstream;dur=%.1f\r\n"
_ANSWER = b"%bx-request-id: %b\r\nrequest-id: %b\r\n%bx-gateway-attempts: %d\r\n" + _TIMING
_WITH_COST = _ANSWER + b"x-gateway-cost-usd: %d.%09d\r\n"
_NUSD = 1_000_000_000


def static_headers(model: str | None, provider: str, target: str) -> bytes:
    """The part that is the same for every answer of a target; rendered once. *model* is None where that differs."""
    return render_headers(
        [
            *((("x-gateway-model", model),) if model is not None else ()),
            ("x-gateway-provider", provider),
            ("x-gateway-target", target),
            ("x-gateway-cache", "off"),
        ]
    )


def answer_headers(call: Call, attempt: Attempt, static: bytes, kind: bytes, now: float) -> bytes:
    """The header block of a good answer, as far as it is known at *now*."""
    request_id = call.request_id.encode()
    upstream = (attempt.first_content or now) - attempt.started
    total = now - call.started
    if len(call.attempts) > 1:
        # Neither what failed before nor the waiting in between is the gateway's own time.
        total -= call.waited_seconds + sum(earlier.ended - earlier.started for earlier in call.attempts[:-1])
    own = total - upstream
    own_ms = own * 1000 if own > 0 else 0.0
    tries, cost = len(call.attempts), attempt.hold.cost_nusd
    if cost is None:
        block = _ANSWER % (kind, request_id, request_id, static, tries, own_ms, upstream * 1000)
    else:
        dollars = (cost // _NUSD, cost % _NUSD)
        block = _WITH_COST % (kind, request_id, request_id, static, tries, own_ms, upstream * 1000, *dollars)
    if call.model is not None and call.model.pattern:
        block += render_headers([("x-gateway-model", call.model.id)])
    if attempt.adjustments:
        block += b"x-gateway-adjusted: %b\r\n" % adjusted.as_text(attempt.adjustments).encode()
    if tries > 1 and call.attempts[0].target is not attempt.target:
        block += render_headers([("x-gateway-fallback-from", call.attempts[0].target.name)])
    return block


def early_headers(call: Call, model: str, now: float) -> bytes:
    """The header block of a stream whose status had to go out before any target had answered."""
    pairs = [
        ("x-request-id", call.request_id),
        ("request-id", call.request_id),
        ("x-gateway-model", model),
        ("x-gateway-cache", "off"),
    ]
    return SSE + render_headers(pairs) + _TIMING % ((now - call.started) * 1000, 0.0)


def send_error(call: Call, error: GatewayError, verdict: Verdict | None = None) -> None:
    """Answer *call* with *error*; the status must not have been sent yet."""
    provider = verdict.provider if verdict else None
    status = verdict.upstream_status if verdict else None
    headers = error_headers(
        error,
        call.request_id,
        retry_after_seconds=verdict.retry_after_seconds if verdict else None,
        should_retry=verdict.should_retry if verdict else None,
    )
    if call.model is not None:
        headers += render_headers([("x-gateway-model", call.model.id)])
    if call.attempts:
        last = call.attempts[-1].target
        headers += render_headers([("x-gateway-provider", last.provider), ("x-gateway-target", last.name)])
        headers += b"x-gateway-attempts: %d\r\n" % len(call.attempts)
    call.exchange.respond(error.status, headers, error_body(error, call.request_id, provider, status))
