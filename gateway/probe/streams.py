"""Streams: how they end, and where usage, reasoning, tool calls and log probabilities stand in them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

from adapters.spec import Support
from adapters.vocabulary import LogprobsShape, UsagePlace
from gateway.probe.answers import logprobs_shape, reasoning_fields
from gateway.probe.finding import Finding, differs, holds, not_settled
from gateway.probe.parameters import use_of
from gateway.probe.samples import CALL, ROOM, TOOL, Fragment
from gateway.probe.seen import Seen
from gateway.probe.session import Session

_DONE: Final = "data: [DONE]"
_UNTOLD: Final = "without include_usage"


async def streams(session: Session) -> AsyncIterator[Finding]:
    """Findings on the streams of a target that streams at all."""
    if not session.outcomes.get("stream"):
        return
    plain = await session.chat({"stream": True})
    if not plain.taken:
        yield not_settled("streaming", "", f"{plain.words}: {plain.complaint()}")
        return
    yield _end(session, plain)
    rule = session.param("stream_options.include_usage")
    told: Seen | None = None
    if session.outcomes.get("stream_options.include_usage") and (rule is None or rule.support is not Support.IGNORED):
        told = await session.chat({"stream": True, "stream_options": {"include_usage": True}})
    yield _usage(session, plain, told if told is not None and told.taken else None)
    yield _unasked(session, plain)
    if session.acts_on("tools"):
        called = await session.chat({"stream": True, "tools": [TOOL]}, CALL, ROOM)
        if called.taken:
            yield _calls(session, called)
    if session.acts_on("logprobs"):
        finding = await _logprobs(session)
        if finding is not None:
            yield finding
    finding = _reasoning(session)
    if finding is not None:
        yield finding


def _end(session: Session, seen: Seen) -> Finding:
    marker = session.spec.streaming.done_marker
    # What else may be written there is a remark.
    says = _DONE if marker == _DONE else "the end of the body"
    found = _DONE if seen.payloads and seen.payloads[-1].strip() == b"[DONE]" else "the end of the body"
    if says == found or marker is None:
        return holds("streaming.done_marker", marker or "nothing", found)
    override = {"streaming": {"done_marker": _DONE if found == _DONE else None}}
    return differs("streaming.done_marker", marker, found, override)


def _place(session: Session, seen: Seen) -> UsagePlace:
    for chunk in seen.chunks:
        if isinstance(chunk.get("usage"), dict):
            choices = chunk.get("choices") or []
            finished = any(isinstance(one, dict) and one.get("finish_reason") for one in choices)
            if not choices:
                return UsagePlace.OWN_CHUNK
            if finished:
                return UsagePlace.FINISH_CHUNK
    return UsagePlace.NEVER


def _usage(session: Session, plain: Seen, told: Seen | None) -> Finding:
    streaming = session.spec.streaming
    says = streaming.usage
    seen = _place(session, told if told is not None else plain)
    if told is None and not streaming.usage_unasked and seen is UsagePlace.NEVER:
        return not_settled("streaming.usage", says.value, "usage cannot be asked for")
    if seen is says:
        return holds("streaming.usage", says.value, seen.value)
    return differs("streaming.usage", says.value, seen.value, {"streaming": {"usage": seen.value}})


def _unasked(session: Session, plain: Seen) -> Finding:
    streaming = session.spec.streaming
    found = bool(plain.usage)
    path = streaming.usage_field.split(".") if streaming.usage_field is not None else []
    if path:
        found = found or any("prompt_tokens" in (_at(chunk, path) or ()) for chunk in plain.chunks)
    says, seen = (("comes" if one else "does not come") + f" {_UNTOLD}" for one in (streaming.usage_unasked, found))
    if found is streaming.usage_unasked:
        return holds("streaming.usage_unasked", says, seen)
    return differs("streaming.usage_unasked", says, seen, {"streaming": {"usage_unasked": found}})


def _at(chunk: Mapping[str, Any], path: list[str]) -> Any:
    value: Any = chunk
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _calls(session: Session, seen: Seen) -> Finding:
    fact, whole = "streaming.whole_tool_calls", session.spec.streaming.whole_tool_calls
    says = "in one piece" if whole else "in pieces"
    if not seen.calls:
        return not_settled(fact, says, "the model made no call")
    found = len(seen.calls) == 1
    told = "in one piece" if found else "in pieces"
    if found is whole:
        return holds(fact, says, told)
    return differs(fact, says, told, {"streaming": {"whole_tool_calls": found}})


async def _logprobs(session: Session) -> Finding | None:
    rule = session.param("logprobs")
    if rule is None:
        return None
    fragment: Fragment = {"stream": True, **use_of(session, "logprobs", rule)}
    seen = await session.chat(fragment)
    fact, says = "params.logprobs.stream_shape", rule.stream_shape or rule.response_shape
    if "logprobs" in session.plain_forms:
        says = LogprobsShape.OPENAI
    found = logprobs_shape(seen)
    if found is None:
        return not_settled(fact, says.value, "the stream holds none")
    if found is says or (says is LogprobsShape.CONTENT_IDS and found is LogprobsShape.OPENAI):
        return holds(fact, says.value, found.value)
    return differs(fact, says.value, found.value, {"params": {"logprobs": {"stream_shape": found.value}}})


def _reasoning(session: Session) -> Finding | None:
    facts = session.spec.reasoning
    fields = {name for seen in session.answers if seen.streamed and seen.taken for name in reasoning_fields(seen)}
    text = facts.stream_field or facts.out_field or ""
    says = text or "none"
    if not fields:
        return None
    known = f"{text} {facts.alt_stream_field or ''}"
    unknown = sorted(name for name in fields if f"delta.{name}" not in known and f"message.{name}" not in known)
    told = ", ".join(f"delta.{name}" for name in sorted(fields))
    if not unknown:
        return holds("reasoning.stream_field", says, told)
    return differs("reasoning.stream_field", says, told, {"reasoning": {"stream_field": f"delta.{unknown[0]}"}})
