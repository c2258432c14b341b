"""A message or a delta in OpenAI's shape: reasoning under its name, text as a string, log probabilities, calls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from adapters.draft import AnswerNeeds
from adapters.functions import old_style
from adapters.repair import logprobs
from adapters.repair.arguments import arguments_text
from adapters.repair.choice import ChoiceRepair
from adapters.repair.chunk import ChunkChoice, holds, object_of, value_of
from adapters.repair.rules import Rules
from adapters.stream import is_usual

_TEXT_OR_PARTS: Final = frozenset((b'"', b"[", b"n"))
"""How content begins that is a text, a list of parts, or null."""


def mend_delta(
    chunk: ChunkChoice, choice: ChoiceRepair, rules: Rules, needs: AnswerNeeds, *, new_style: bool, last: bool
) -> None:
    """Put the delta of a chat's *choice* in order, but for its text, which may have to be held.

    *new_style*: the client offered ``tools``; *last*: the choice seems to end here.
    """
    delta = chunk.delta
    if not choice.started:
        choice.started = True
        if value_of(delta.get("role")) != "assistant":
            delta.pop("role", None)
            chunk.delta = delta = {"role": "assistant", **delta}
            chunk.changed = True
    elif "role" in delta:
        chunk.take("role")  # clients that join deltas would join it as well
    name_reasoning(chunk, rules)
    join_parts(chunk)
    name_logprobs(chunk, needs)
    if "function_call" in delta and holds(delta["function_call"]):
        _mend_function_call(chunk, choice, new_style=new_style)
    if "tool_calls" in delta and value_of(delta["tool_calls"]) is not None:
        _mend_calls(chunk, choice, last=last)


def _mend_calls(chunk: ChunkChoice, choice: ChoiceRepair, *, last: bool) -> None:
    parts = value_of(chunk.delta["tool_calls"])
    if isinstance(parts, dict):
        parts = [parts]  # the only call there is, by itself
        chunk.put("tool_calls", parts)
    if not isinstance(parts, list) or not parts:
        chunk.take("tool_calls")
        return
    mended = choice.calls.feed(parts, last=last)
    if not mended:
        chunk.take("tool_calls")
    elif mended != parts:
        chunk.put("tool_calls", mended)


def _mend_function_call(chunk: ChunkChoice, choice: ChoiceRepair, *, new_style: bool) -> None:
    call = object_of(chunk.delta["function_call"])
    stub = choice.function_call is None and not choice.old_style and not any(map(holds, call.values()))
    if stub or holds(chunk.delta.get("tool_calls")) or (len(choice.calls) and not choice.old_style):
        chunk.take("function_call")  # the same call in both styles, or no call at all
        return
    if new_style:
        choice.old_style = True
        chunk.take("function_call")
        chunk.put("tool_calls", [{"index": 0, "function": {name: value_of(value) for name, value in call.items()}}])
        return
    found = value_of(call.get("arguments"))
    text = arguments_text(found)
    choice.function_call = (choice.function_call or "") + text
    if text != found:
        chunk.put("function_call", {**call, "arguments": text})


def in_old_words(chunks: Iterable[ChunkChoice], needs: AnswerNeeds) -> None:
    """Tell calls as those of functions, where the client has asked for these."""
    if needs.asked is None:
        return
    for chunk in chunks:
        if "tool_calls" in chunk.delta:
            call = old_style(value_of(chunk.take("tool_calls")))
            if call is not None:
                chunk.put("function_call", call)
        if value_of(chunk.choice.get("finish_reason")) == "tool_calls":
            chunk.put_reason("function_call")


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
    """Turn content that comes as a list of parts into text and reasoning, and what is no text into the JSON it is."""
    content = chunk.delta.get("content")
    written = bytes_of(content) if content is not None else b""
    if written and written[:1] not in _TEXT_OR_PARTS:
        chunk.put("content", written.decode())
        return
    parts = value_of(content) if written[:1] == b"[" else None
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
