"""What whole answers hold: log probabilities, reasoning, reasons to finish; most of it read in passing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

from adapters.vocabulary import FinishReason, LogprobsShape
from gateway.probe.finding import Finding, differs, holds, not_settled
from gateway.probe.parameters import use_of
from gateway.probe.samples import ROOM
from gateway.probe.seen import Seen
from gateway.probe.session import Session, compare

_FIELDS: Final = ("reasoning", "reasoning_content", "thinking")


async def answers(session: Session) -> AsyncIterator[Finding]:
    """Findings on whole answers; to be asked after everything else, for more to look at."""
    if session.acts_on("logprobs"):
        yield await _logprobs(session)
    finding = _reasoning(session)
    if finding is not None:
        yield finding
        if session.spec.reasoning.switch_for(session.canonical):
            yield await _off(session)
    yield _finish_reasons(session)


def reasoning_fields(seen: Seen) -> set[str]:
    """The members of messages that hold reasoning."""
    return {
        name for message in seen.messages for name in _FIELDS if isinstance(message.get(name), str) and message[name]
    }


def logprobs_shape(seen: Seen) -> LogprobsShape | None:
    """The shape of the log probabilities in an answer; None where there are none."""
    for choice in seen.choices:
        found = choice.get("logprobs")
        if isinstance(found, (int, float)) and not isinstance(found, bool):
            return LogprobsShape.FLOAT
        if isinstance(found, dict):
            shape = _shape(found)
            if shape is not None:
                return shape
    return None


def _shape(found: dict[str, Any]) -> LogprobsShape | None:
    if isinstance(found.get("token_logprobs"), list):
        return LogprobsShape.ARRAYS
    rows = found.get("content")
    if not isinstance(rows, list) or not rows or not isinstance(rows[0], dict):
        return None
    return LogprobsShape.OPENAI if "token" in rows[0] and "bytes" in rows[0] else LogprobsShape.CONTENT_IDS


async def _logprobs(session: Session) -> Finding:
    rule = session.param("logprobs")
    fact = "params.logprobs.response_shape"
    own = rule is not None and "logprobs" not in session.plain_forms
    says = rule.response_shape if rule is not None and own else LogprobsShape.OPENAI
    seen = await session.chat(use_of(session, "logprobs", rule))
    found = logprobs_shape(seen)
    if found is None:
        return not_settled(fact, says.value, "the answer holds none")
    if found is says:
        return holds(fact, says.value, found.value)
    return differs(fact, says.value, found.value, {"params": {"logprobs": {"response_shape": found.value}}})


def _reasoning(session: Session) -> Finding | None:
    facts = session.spec.reasoning
    whole = [seen for seen in session.answers if not seen.streamed and seen.taken]
    fields = {name for seen in whole for name in reasoning_fields(seen)}
    tags = any(
        opening in seen.text or closing in seen.text for seen in whole for opening, closing in facts.tags.items()
    )
    says = facts.out_field or ("think tags" if facts.tags_for(session.canonical) else "none")
    known = f"{facts.out_field or ''} {facts.alt_out_field or ''}"
    unknown = sorted(name for name in fields if f"message.{name}" not in known)
    told = ", ".join([*(f"message.{name}" for name in sorted(fields)), *(["think tags"] if tags else [])])
    if not told:
        return None
    if unknown:
        return differs("reasoning.out_field", says, told, {"reasoning": {"out_field": f"message.{unknown[0]}"}})
    if tags and not facts.tags_for(session.canonical):
        return differs("reasoning.out_field", says, told, {"reasoning": {"think_tags": [session.canonical]}})
    return holds("reasoning.out_field", says, told)


async def _off(session: Session) -> Finding:
    """The switch that is said to stop the model from reasoning."""
    off = dict(session.spec.reasoning.switch_for(session.canonical))
    seen = await session.chat(off, room=ROOM)
    override = {"reasoning": {"off_models": ["none"]}}
    finding = compare("reasoning.off", True, seen, override)
    if seen.taken and (reasoning_fields(seen) or "</think>" in seen.text):
        return differs("reasoning.off", "stops it", "it reasons on", override)
    return finding


def _finish_reasons(session: Session) -> Finding:
    facts = session.spec.finish_reason
    found = {reason for seen in session.answers if seen.taken for reason in seen.finish_reasons}
    listed = (*facts.values, *facts.nonstandard)
    unknown = sorted(found - set(listed)) if listed else sorted(found - set(FinishReason))
    says, told = ", ".join(listed) or "OpenAI's", ", ".join(sorted(found)) or "none"
    if not unknown:
        return holds("finish_reason.values", says, told)
    meant = {reason: _meaning(reason) for reason in unknown if reason not in set(FinishReason)}
    override = {"finish_reason": {"values": [*facts.values, *unknown], "nonstandard": meant}}
    return differs("finish_reason.values", says, told, override)


def _meaning(reason: str) -> str:
    word = reason.lower()
    if "len" in word or "max" in word:
        return FinishReason.LENGTH.value
    return FinishReason.TOOL_CALLS.value if "tool" in word else FinishReason.STOP.value
