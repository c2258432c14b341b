"""A message or a delta in OpenAI's shape: reasoning under its name, text as a string, log probabilities, calls."""

from __future__ import annotations

from typing import Any

from adapters.draft import AnswerNeeds
from adapters.repair import logprobs
from adapters.repair.chunk import ChunkChoice, holds, value_of
from adapters.repair.rules import Rules
from adapters.stream import is_usual


def name_reasoning(chunk: ChunkChoice, rules: Rules) -> None:
    """Put reasoning where clients look for it; said under two names, it stays once (TensorRT-LLM)."""
    for name in rules.reasoning_members:
        if name in chunk.delta and holds(chunk.delta[name]):
            value = value_of(chunk.delta[name])
            if isinstance(value, str):
                chunk.take(name)
                if not holds(chunk.delta.get("reasoning_content")):
                    chunk.put("reasoning_content", value)


def join_parts(chunk: ChunkChoice) -> None:
    """Turn content that comes as a list of parts into text and reasoning."""
    content = chunk.delta.get("content")
    parts = value_of(content) if content is not None and bytes_of(content)[:1] == b"[" else None
    if not isinstance(parts, list):
        return
    text, reasoning = "", ""
    for part in parts:
        if not isinstance(part, dict):
            continue
        if part.get("type") == "thinking":
            reasoning += _text_of(part.get("thinking"))
        else:
            text += _text_of(part.get("text"))
    chunk.put("content", text or None)
    if reasoning and not holds(chunk.delta.get("reasoning_content")):
        chunk.put("reasoning_content", reasoning)


def name_logprobs(chunk: ChunkChoice, needs: AnswerNeeds) -> None:
    """Give a chat's log probabilities OpenAI's shape, with no more alternatives than were asked for."""
    found = chunk.choice.get("logprobs")
    if found is None or (is_usual(bytes_of(found)) and not needs.logprobs):
        return
    told = value_of(found)
    usual = logprobs.usual(told, chunk.text, needs)
    if usual != (told if not isinstance(told, dict) else {"refusal": None, **told}):
        chunk.put_choice("logprobs", usual)


def bytes_of(value: Any) -> bytes:
    """The bytes of a member that was not decoded yet; none of one that was."""
    return bytes(value) if not isinstance(value, (str, list, dict, int, float, type(None))) else b""


def _text_of(value: Any) -> str:
    if isinstance(value, list):
        return "".join(_text_of(part.get("text")) for part in value if isinstance(part, dict))
    return value if isinstance(value, str) else ""
