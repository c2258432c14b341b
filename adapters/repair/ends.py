"""How a choice ends: with what its provider calls a reason, what was held of it, and what its calls lack."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from adapters.repair.asked import names_a_tool
from adapters.repair.choice import ChoiceRepair
from adapters.repair.chunk import ChunkChoice, value_of
from adapters.repair.finish import FAILED, PLAIN_ENDS, FinishReasons, settled, was_cut
from adapters.repair.misplaced import error_of_choice


def reason_of(chunk: ChunkChoice, reasons: FinishReasons) -> str | None:
    """Why the choice of *chunk* ends there, in OpenAI's words; None where it goes on.

    Raises `AnswerFailedError` for a reason that tells of a failure.
    """
    found = value_of(chunk.choice.get("finish_reason"))
    if found is None:
        return None
    reason = reasons.read(found)
    if reason == FAILED:
        raise error_of_choice(chunk.choice, found)
    return reason


def end_choice(
    chunk: ChunkChoice, choice: ChoiceRepair, reason: str, request: Mapping[str, msgspec.Raw]
) -> list[ChunkChoice]:
    """The last pieces of *choice*, which ends with *chunk* and for *reason*: what was held of it, what completes its
    calls, and the reason that is true of what it holds. *request* is what was asked."""
    out = choice.text(chunk, last=True)
    if choice.cut:
        return out
    if not was_cut(reason):
        further = _completions(chunk, choice)
        if further:
            end = chunk.like()
            if chunk.says_something():
                chunk.put_reason(None)
                out += [*further, end]
                chunk = end
            else:
                out[-1:] = [*further, chunk]
    choice.reason = settled(reason, len(choice.calls), choice.function_call is not None, names_a_tool(request))
    chunk.put_reason(choice.reason)
    return out


def _completions(chunk: ChunkChoice, choice: ChoiceRepair) -> list[ChunkChoice]:
    """What the calls of *choice* lack to be JSON, as pieces of it."""
    parts = choice.calls.finish()
    further = [chunk.like(tool_calls=parts)] if parts else []
    if choice.function_call is not None and not choice.function_call.strip() and not len(choice.calls):
        further.append(chunk.like(function_call={"arguments": "{}"}))
    return further


def ends_plainly(choice: ChoiceRepair, reason: str) -> bool:
    """Whether *choice* ends with *reason* as it stands; it has ended then."""
    if reason not in PLAIN_ENDS or choice.reason is not None:
        return False
    if len(choice.calls) or choice.function_call is not None:
        return False
    choice.reason = reason
    return True
