"""Whole answers: the rules of streams, applied to one that comes in a single piece."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from adapters.answers import SILENCE, Answer, AnswerChoice, UnreadableError, fold_choice
from adapters.draft import AnswerNeeds
from adapters.plain_answer import TAG_OR_CALL
from adapters.plain_event import MOST_SECONDS
from adapters.repair.asked import choices_asked_for
from adapters.repair.chunk import holds, object_of, value_of
from adapters.repair.machine import StreamMachine
from adapters.repair.rules import Rules
from adapters.stream import is_usual
from adapters.types import Operation
from adapters.usage import are_all_there

_SOUND: Final = frozenset(("stop", "length", "content_filter"))
_NONE: Final = msgspec.Raw(b"null")
_encode = msgspec.json.Encoder().encode
_decode_top = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_choices = msgspec.json.Decoder(list[dict[str, msgspec.Raw]]).decode


def is_plain(answer: Answer, operation: Operation) -> bool:
    """Whether an answer is text in exactly the shape that OpenAI gives it, so that no rule has anything to do."""
    chat = operation is Operation.CHAT
    if (
        answer.object != ("chat.completion" if chat else "text_completion")
        or type(answer.created) is not int
        or answer.created > MOST_SECONDS
        or type(answer.id) is not str
        or type(answer.model) is not str
        or not answer.id
        or not answer.model
        or not answer.choices
        or answer.choices[0].index
        or not are_all_there(answer.usage)
    ):
        return False
    for choice in answer.choices:
        reason = choice.finish_reason
        if type(choice.index) is not int or type(reason) is not str or reason not in _SOUND:
            return False
        if not (_is_plain_message(choice) if chat else bytes(choice.text)[:1] == b'"'):
            return False
    return True


def _is_plain_message(choice: AnswerChoice) -> bool:
    message = choice.message
    if message is None or message.role != "assistant":
        return False
    content = bytes(message.content)
    return (
        content[:1] == b'"'
        and content[:2] not in TAG_OR_CALL
        and message.reasoning == _NONE
        and message.tool_calls == _NONE
        and message.function_call == _NONE
        and is_usual(bytes(choice.logprobs))
    )


def mend(
    rules: Rules,
    body: bytes,
    operation: Operation,
    needs: AnswerNeeds | None,
    request: Mapping[str, msgspec.Raw],
) -> bytes:
    """*body* as OpenAI would have said it; the same bytes where there is nothing to do.

    Raises `AnswerFailedError` for an answer that says it failed, `UnreadableError` for what is no answer.
    """
    try:
        top: dict[str, Any] = dict(_decode_top(body))
        choices = _decode_choices(top.pop("choices"))
        repair = StreamMachine(rules, operation, needs, request, stream=False)
        changed = repair.mend_top(top)
        if len(choices) > 1 and operation is Operation.CHAT and choices_asked_for(request) == 1:
            joined = _joined(choices)
            changed |= len(joined) < len(choices)
            choices = joined
        mended = []
        for place, choice in enumerate(choices):
            found = _mended(repair, place, choice, operation, alone=len(choices) == 1)
            changed |= found is not choice
            mended.append(found)
    except (msgspec.DecodeError, AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise UnreadableError(str(error)) from None
    return _encode({**top, "choices": mended}) if changed else body


def _joined(choices: list[dict[str, msgspec.Raw]]) -> list[dict[str, msgspec.Raw]]:
    """*choices* as the one that was asked for, where text and calls of it have one each (ericc-ch/copilot-api#81)."""
    messages = [object_of(choice.get("message", choice.get("delta"))) for choice in choices]
    texts = sum(holds(message.get("content")) for message in messages)
    if texts > 1 or any(holds(choice.get("text")) for choice in choices):
        return choices
    whole: dict[str, Any] = {}
    calls: list[Any] = []
    for message in messages:
        found = value_of(message.pop("tool_calls", None))
        calls += found if isinstance(found, list) else [found] if found else []
        whole |= {name: value for name, value in message.items() if not holds(whole.get(name))}
    if calls:
        whole["tool_calls"] = calls
    reasons = {bytes(choice.get("finish_reason", _NONE)): choice for choice in choices}
    ends = reasons.get(b'"tool_calls"', choices[0])
    return [{**ends, "index": msgspec.Raw(b"0"), "message": msgspec.Raw(_encode(whole))}]


def _mended(
    repair: StreamMachine, place: int, choice: dict[str, msgspec.Raw], operation: Operation, *, alone: bool
) -> Mapping[str, Any]:
    chat = operation is Operation.CHAT
    before = {name: value_of(value) for name, value in choice.items()}
    piece: dict[str, Any] = dict(choice)
    found = before.get("index")
    piece["index"] = found if isinstance(found, int) and not alone else place
    if chat:
        piece["delta"] = _numbered(object_of(piece.pop("message", piece.get("delta"))))
        text = before.get("text")
        if not piece["delta"] and isinstance(text, str):
            piece["delta"] = {"content": piece.pop("text")}
    chunks = repair.whole_choice(piece)
    after: dict[str, Any] = {"index": piece["index"], "finish_reason": None}
    for chunk in chunks:
        said = {name: value_of(value) for name, value in chunk.choice.items()}
        if chat:
            said["delta"] = {name: value_of(value) for name, value in chunk.delta.items()}
        fold_choice(after, said, operation)
    if chat:
        message = after["message"]
        for call in message.get("tool_calls", ()):
            call.pop("index", None)
        if message == SILENCE:
            message["content"] = ""
    if "logprobs" in before:
        after.setdefault("logprobs", None)
    moved = ("delta", "message", "usage") if "text" in piece else ("delta", "message", "usage", "text")
    kept = {name: value for name, value in before.items() if name not in moved}
    made = kept | after
    if chat:
        # Members with nothing in them are no part of a stream's delta, but of a message they are.
        made["message"] = {**_nulls(before.get("message")), **message}
    return choice if made == before else made


def _numbered(message: dict[str, Any]) -> dict[str, Any]:
    """The message with its calls told apart: each is a whole one, whatever their ids say."""
    calls = value_of(message.get("tool_calls"))
    calls = [calls] if isinstance(calls, dict) else calls
    if not isinstance(calls, list):
        return message
    numbered = [{**call, "index": place} if isinstance(call, dict) else call for place, call in enumerate(calls)]
    return {**message, "tool_calls": numbered}


def _nulls(message: Any) -> dict[str, Any]:
    known = ("content", "refusal", "audio", "annotations", "function_call", "reasoning", "reasoning_content")
    return {name: message[name] for name in known if name in message and not message[name]} if message else {}
