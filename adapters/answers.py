"""Whole answers: is it one, what did it use, and the turn from a stream to a whole and back."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from adapters.failures import ErrorFields, read_error
from adapters.stream_edits import sum_of_choices
from adapters.types import Operation

_NOT_OF_THE_WHOLE: Final = ("choices", "object")
_NOTHING: Final = msgspec.Raw(b"null")
SILENCE: Final = {"role": "assistant", "content": None}
_SILENT: Final = frozenset((b"null", b'""', b"[]", b"{}"))
# Whoever ends like this had more to say, or may not say it.
_CUT: Final = ("length", "content_filter", "max_tokens")
_NO_ERROR: Final = frozenset((b"null", b'""', b"{}", b"false"))
# No model calls more tools at once; an index beyond it is nonsense, and would be filled up to.
_MOST_CALLS: Final = 2048


class UnreadableError(ValueError):
    """An answer or a stream is JSON, but of no shape that can be turned into the other."""


class AnswerMessage(msgspec.Struct, gc=False):
    """The message of a choice; undecoded, but for what has to be of one type."""

    role: Any = None
    content: msgspec.Raw = _NOTHING
    reasoning: msgspec.Raw = _NOTHING
    reasoning_content: msgspec.Raw = _NOTHING
    tool_calls: msgspec.Raw = _NOTHING
    function_call: msgspec.Raw = _NOTHING
    refusal: msgspec.Raw = _NOTHING
    audio: msgspec.Raw = _NOTHING
    images: msgspec.Raw = _NOTHING

    @property
    def is_silent(self) -> bool:
        """Whether there is nothing in it."""
        said = (
            self.content, self.reasoning, self.reasoning_content, self.tool_calls, self.function_call, self.refusal,
            self.audio, self.images,
        )  # fmt: skip
        return all(bytes(value) in _SILENT for value in said)


class AnswerChoice(msgspec.Struct, gc=False):
    """One choice of an answer: ``message`` in chat, ``text`` in completions."""

    index: Any = None
    message: AnswerMessage | None = None
    delta: msgspec.Raw = _NOTHING
    """In place of the message, from servers that know no other piece."""
    text: msgspec.Raw = _NOTHING
    finish_reason: Any = None
    logprobs: msgspec.Raw = _NOTHING
    error: msgspec.Raw = _NOTHING


class Answer(msgspec.Struct, gc=False):
    """The parts of an answer that we act on."""

    id: Any = None
    object: Any = None
    created: Any = None
    model: Any = None
    choices: list[AnswerChoice] | None = None
    data: msgspec.Raw = _NOTHING
    usage: msgspec.Raw = _NOTHING
    error: msgspec.Raw = _NOTHING


_decode = msgspec.json.Decoder(Answer).decode


def read_answer(body: bytes) -> Answer:
    """Decode an answer; `msgspec.DecodeError` when it is no JSON object of the right shape."""
    try:
        return _decode(body)
    except RecursionError:
        raise msgspec.DecodeError("nested too deeply") from None


def has_error(answer: Answer) -> bool:
    """True when a 200 holds an error object beside or instead of an answer (U25); see also `is_error`."""
    return answer.error is not _NOTHING and bytes(answer.error) not in _NO_ERROR


def is_complete(answer: Answer, operation: Operation) -> bool:
    """Whether the answer holds what was asked for; an empty list of choices is no answer, nor is one without message.

    Where a choice tells of its failure, that is for a repair to tell.
    """
    if operation is Operation.EMBEDDINGS:
        return bytes(answer.data)[:1] == b"["
    if not answer.choices or operation is not Operation.CHAT:
        return bool(answer.choices)
    return all(
        choice.message is not None or choice.delta != _NOTHING or choice.error != _NOTHING or choice.text != _NOTHING
        for choice in answer.choices
    )


def says_nothing(answer: Answer) -> bool:
    """Whether a chat's answer has come to its end without a word, a thought or a call.

    Some providers answer so when they are overloaded (diegosouzapw/OmniRoute#7000, BerriAI/litellm#14655).
    """
    return all(
        choice.message is not None and choice.message.is_silent and choice.finish_reason not in _CUT
        for choice in answer.choices or ()
    )


def text_bytes(answer: Answer) -> int:
    """How much text the answer holds, about: what it is charged by when it tells no usage."""
    length = 0
    for choice in answer.choices or ():
        length += len(bytes(choice.text))
        if choice.message is not None:
            said = choice.message
            length += sum(len(bytes(value)) for value in (said.content, said.reasoning, said.reasoning_content))
            length += len(bytes(said.tool_calls)) + len(bytes(said.function_call))
    return length


def with_model(body: bytes, model: bytes) -> bytes:
    """The answer with another ``model``; *model* is JSON."""
    fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    fields["model"] = msgspec.Raw(model)
    return msgspec.json.encode(fields)


def fold(payloads: list[bytes], operation: Operation, *, usage_per_choice: bool = False) -> bytes:
    """One whole answer from the chunks of a stream (U27: an upstream that streams although it was not asked to).

    With *usage_per_choice* each choice comes with a usage of its own, and the answer gets their sum. Raises
    `UnreadableError` for chunks that are none, and for a stream that broke off: a choice without a finish_reason is
    not a whole one.
    """
    try:
        whole = _fold(payloads, operation, usage_per_choice)
    except SHAPE_ERRORS as error:
        raise UnreadableError(str(error)) from None
    if any(choice["finish_reason"] is None for choice in whole["choices"]):
        raise UnreadableError("a choice has no finish_reason")
    return msgspec.json.encode(whole)


def _fold(payloads: list[bytes], operation: Operation, usage_per_choice: bool) -> dict[str, Any]:
    whole: dict[str, Any] = {}
    choices: dict[int, dict[str, Any]] = {}
    for payload in payloads:
        chunk = msgspec.json.decode(payload)
        if usage_per_choice and chunk.get("usage") and whole.get("usage"):
            chunk["usage"] = sum_of_choices(whole["usage"], chunk["usage"])
        whole |= {name: value for name, value in chunk.items() if name not in _NOT_OF_THE_WHOLE and value is not None}
        for part in chunk.get("choices") or ():
            index = part.get("index") or 0
            choice = choices.setdefault(index, {"index": index, "finish_reason": None})
            fold_choice(choice, part, operation)
    whole["object"] = "chat.completion" if operation is Operation.CHAT else "text_completion"
    whole["choices"] = [choices[index] for index in sorted(choices)]
    for choice in whole["choices"]:
        if choice.get("message") == SILENCE:
            choice["message"]["content"] = ""  # as in a whole answer; null stands beside tool calls and the like
    return whole


def fold_choice(choice: dict[str, Any], part: dict[str, Any], operation: Operation) -> None:
    """Add the next piece of a choice to what there is of it. Raises what odd JSON raises when it is taken apart."""
    if part.get("finish_reason") is not None:
        choice["finish_reason"] = part["finish_reason"]
    logprobs = part.get("logprobs")
    if logprobs:
        kept = choice.setdefault("logprobs", {})
        for name, value in logprobs.items():
            kept[name] = kept.get(name, []) + value if isinstance(value, list) else value
    if operation is not Operation.CHAT:
        choice["text"] = choice.get("text", "") + (part.get("text") or "")
        return
    message = choice.setdefault("message", {"role": "assistant", "content": None})
    for name, value in (part.get("delta") or {}).items():
        if name == "tool_calls":
            _fold_calls(message.setdefault("tool_calls", []), value or [])
        elif isinstance(value, str) and name != "role":
            message[name] = (message.get(name) or "") + value
        elif isinstance(value, list) and isinstance(message.get(name), list):
            message[name] = message[name] + value
        elif value is not None:
            message[name] = value


def _fold_calls(calls: list[dict[str, Any]], parts: list[dict[str, Any]]) -> None:
    for part in parts:
        index = part.get("index")
        if index is None:
            index = max(0, len(calls) - 1)
        if not 0 <= index < _MOST_CALLS:
            raise UnreadableError("a tool call has no sensible index")
        while len(calls) <= index:
            calls.append({"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
        call, function = calls[index], part.get("function") or {}
        call["id"] = call["id"] or part.get("id") or ""
        call["function"]["name"] = call["function"]["name"] or function.get("name") or ""
        call["function"]["arguments"] += function.get("arguments") or ""


def unfold(body: bytes, operation: Operation) -> list[bytes]:
    """The chunk payloads of a stream that says what a whole answer says (U27: a whole where a stream was asked for).

    Raises `UnreadableError` when the answer is of no known shape.
    """
    try:
        return [msgspec.json.encode(payload) for payload in _unfold(body, operation)]
    except SHAPE_ERRORS as error:
        raise UnreadableError(str(error)) from None


def _unfold(body: bytes, operation: Operation) -> list[dict[str, Any]]:
    whole = msgspec.json.decode(body)
    base = {name: value for name, value in whole.items() if name not in ("choices", "usage", "object")}
    base["object"] = "chat.completion.chunk" if operation is Operation.CHAT else "text_completion"
    payloads: list[dict[str, Any]] = []
    for place, choice in enumerate(whole["choices"]):
        index, logprobs = choice.get("index", place), choice.get("logprobs")
        part: dict[str, Any] = {"index": index, "finish_reason": None, "logprobs": logprobs}
        if operation is Operation.CHAT:
            message = dict(choice.get("message") or choice.get("delta") or {})
            calls = message.get("tool_calls")
            calls = [calls] if isinstance(calls, dict) else calls
            if calls:
                message["tool_calls"] = [{**call, "index": number} for number, call in enumerate(calls)]
            part["delta"] = {"role": "assistant", **message}
            end: dict[str, Any] = {"index": index, "delta": {}}
        else:
            part["text"] = choice.get("text") or ""
            end = {"index": index, "text": ""}
        reason = choice.get("finish_reason")
        if choice.get("error"):  # why it ended like that
            end["error"] = choice["error"]
        payloads.append({**base, "choices": [part]})
        if reason is not None:  # a missing reason is not made up
            payloads.append({**base, "choices": [{**end, "finish_reason": reason}]})
    if whole.get("usage"):
        payloads.append({**base, "choices": [], "usage": whole["usage"]})
    return payloads


# What decoded JSON of an unexpected shape raises when it is taken apart.
SHAPE_ERRORS: Final = (ValueError, msgspec.DecodeError, AttributeError, IndexError, KeyError, RecursionError, TypeError)


def error_in(answer: Answer) -> ErrorFields:
    """The fields of the error object that a 200 holds."""
    return read_error(b'{"error":%b}' % bytes(answer.error)) or ErrorFields()
