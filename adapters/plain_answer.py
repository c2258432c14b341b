"""The usual answer: text or tool calls in the shape OpenAI gives them, known at one look and passed on as it is."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

from adapters.plain_event import MOST_SECONDS
from adapters.types import Operation, Usage
from adapters.usage import MOST_TOKENS

_CHAT: Final = Operation.CHAT
_COMPLETIONS: Final = Operation.COMPLETIONS
_QUOTE: Final = b'"'
_EMPTY: Final = b'""'
_NULL: Final = b"nu"
TAG_OR_CALL: Final = frozenset((b'"<', b'"{', b'"[', b'"\\', b'" '))
"""How a text may begin that is more than text, quotes and all: with a tag of reasoning, or with a call."""

_Text = Annotated[str, msgspec.Meta(min_length=1)]
_Tokens = Annotated[int, msgspec.Meta(ge=0, le=MOST_TOKENS)]
_Seconds = Annotated[int, msgspec.Meta(le=MOST_SECONDS)]
_Reason = Literal["stop", "length", "content_filter"]


class _PromptDetails(msgspec.Struct, gc=False):
    cached_tokens: _Tokens | None = None


class _CompletionDetails(msgspec.Struct, gc=False):
    reasoning_tokens: _Tokens | None = None


class _Figures(msgspec.Struct, gc=False):
    prompt_tokens: _Tokens
    completion_tokens: _Tokens
    total_tokens: _Tokens
    prompt_tokens_details: _PromptDetails | None = None
    completion_tokens_details: _CompletionDetails | None = None
    cached_tokens: _Tokens | None = None
    prompt_cache_hit_tokens: _Tokens | None = None


class _Function(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    name: _Text
    arguments: _Text


class _Call(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    id: _Text
    type: Literal["function"]
    function: _Function


class _Message(msgspec.Struct, gc=False):
    role: Literal["assistant"]
    content: msgspec.Raw
    reasoning: None = None
    tool_calls: Annotated[list[_Call], msgspec.Meta(min_length=1, max_length=2048)] | None = None
    function_call: None = None


class _ChatChoice(msgspec.Struct, gc=False):
    index: int
    message: _Message
    finish_reason: _Reason | Literal["tool_calls"]
    logprobs: None = None


class _TextChoice(msgspec.Struct, gc=False):
    index: int
    text: msgspec.Raw
    finish_reason: _Reason


class _ChatAnswer(msgspec.Struct, gc=False):
    id: _Text
    object: Literal["chat.completion"]
    created: _Seconds
    model: _Text
    choices: Annotated[list[_ChatChoice], msgspec.Meta(min_length=1)]
    usage: _Figures
    error: None = None


class _TextAnswer(msgspec.Struct, gc=False):
    id: _Text
    object: Literal["text_completion"]
    created: _Seconds
    model: _Text
    choices: Annotated[list[_TextChoice], msgspec.Meta(min_length=1)]
    usage: _Figures
    error: None = None


_decode_chat: Final = msgspec.json.Decoder(_ChatAnswer).decode
_decode_text: Final = msgspec.json.Decoder(_TextAnswer).decode


def plain_usage(body: bytes, operation: Operation) -> Usage | None:
    """What *body* says was used, if no rule of OpenAI's shape leaves anything to do about it; else None."""
    answer: _ChatAnswer | _TextAnswer
    try:
        if operation is _CHAT:
            answer = _decode_chat(body)
            for choice in answer.choices:
                calls = choice.message.tool_calls
                if calls is not None and (len(answer.choices) > 1 or not _are_whole(calls, choice.finish_reason)):
                    return None
                start = bytes(choice.message.content)[:2]
                if start == _NULL and calls is not None:
                    continue
                if (
                    start[:1] != _QUOTE
                    or start == _EMPTY
                    or start in TAG_OR_CALL
                    or (calls is None and choice.finish_reason == "tool_calls")
                ):
                    return None
        elif operation is _COMPLETIONS:
            answer = _decode_text(body)
            for text in answer.choices:
                if bytes(text.text)[:1] != _QUOTE:
                    return None
        else:
            return None
    except (msgspec.DecodeError, RecursionError):
        return None  # another shape, or no answer at all: it is looked at more closely
    if answer.choices[0].index:
        return None  # it counts from somewhere else
    return _usage(answer.usage)


def _are_whole(calls: list[_Call], reason: str) -> bool:
    """Whether the *calls* need nothing: an id of its own each, and a *reason* that tells of them, or of a cut."""
    if reason == "stop":
        return False
    for call in calls:  # a pattern in the type would cost 6 µs a call
        name, arguments = call.function.name, call.function.arguments
        if arguments.isspace() or arguments == "null" or arguments[0] == '"':
            return False  # what is blank is no JSON, and becomes an empty object, as nothing does
        if "<|" in name or name[0].isspace() or name[-1].isspace() or name.startswith("functions."):
            return False  # not as the client knows it
    return len(calls) == 1 or len({call.id for call in calls}) == len(calls)


def _usage(said: _Figures) -> Usage:
    prompt, completion = said.prompt_tokens, said.completion_tokens
    cached = said.cached_tokens or said.prompt_cache_hit_tokens
    if said.prompt_tokens_details is None and said.completion_tokens_details is None and not cached:
        return Usage(prompt, completion)
    if said.prompt_tokens_details is not None:
        cached = said.prompt_tokens_details.cached_tokens or cached
    thought = said.completion_tokens_details.reasoning_tokens if said.completion_tokens_details is not None else None
    if not cached and not thought:
        return Usage(prompt, completion)
    return Usage(prompt, completion, min(prompt, cached or 0), min(completion, thought or 0))
