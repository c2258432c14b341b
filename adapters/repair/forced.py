"""Whether an answer holds the call that the request has forced."""

from __future__ import annotations

import msgspec

# Ends after which a call may be missing with good reason.
_CUT = frozenset(("length", "content_filter"))


class _Name(msgspec.Struct):
    name: str = ""


class _Call(msgspec.Struct):
    function: _Name | None = None
    custom: _Name | None = None


class _Message(msgspec.Struct):
    tool_calls: list[_Call] | None = None
    function_call: _Name | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None


class _Answer(msgspec.Struct):
    choices: list[_Choice]


_decode = msgspec.json.Decoder(_Answer).decode


def lacks_call(body: bytes, name: str) -> bool:
    """Whether a choice of *body*, a whole chat answer in OpenAI's shape, has no call of *name*, or none if that is
    empty. One that was cut or refused need not have any."""
    return any(not _calls(choice, name) for choice in _decode(body).choices)


def _calls(choice: _Choice, name: str) -> bool:
    message = choice.message
    if choice.finish_reason in _CUT or message.refusal:
        return True
    called = [call.function or call.custom or _Name() for call in message.tool_calls or ()]
    if message.function_call is not None:
        called.append(message.function_call)
    return any(not name or call.name == name for call in called)
