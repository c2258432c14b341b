"""The usual events of a stream, in the very shape that OpenAI gives them, as one typed decoding knows them.

A piece of text, the first event or the last of a choice, and the usage at the end: whatever is beside the members named
here is as good, and whatever is not as they say is read by `adapters.stream` with a closer look.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

CHAT_OBJECT: Final = "chat.completion.chunk"
MOST_SECONDS: Final = 10**11
"""A ``created`` beyond it is told in milliseconds: those of this century are more than seconds ever will be."""
ABSENT: Final = msgspec.Raw(b"null")
"""What stands for a member that is not there; one that is null is another object, and equal."""

_Text = Annotated[str, msgspec.Meta(min_length=1)]


class PlainDelta(msgspec.Struct, gc=False):
    """What a chunk of a chat adds to its choice."""

    role: Literal["assistant"] | None = None
    content: msgspec.Raw = ABSENT
    reasoning_content: None = None
    reasoning: None = None
    tool_calls: None = None
    refusal: None = None
    function_call: None = None
    audio: None = None
    images: None = None


class PlainChoice(msgspec.Struct, gc=False):
    """The only choice of a chunk."""

    index: int
    finish_reason: str | None
    delta: PlainDelta | None = None
    text: msgspec.Raw = ABSENT
    """Of a completion, which has no ``delta``."""
    logprobs: msgspec.Raw = ABSENT
    usage: msgspec.UnsetType = msgspec.UNSET
    """Its place is beside the choices."""


class PlainChunk(msgspec.Struct, gc=False):
    """The payload of an event."""

    id: _Text
    object: Literal["chat.completion.chunk", "text_completion"]
    created: Annotated[int, msgspec.Meta(le=MOST_SECONDS)]
    model: _Text
    choices: Annotated[list[PlainChoice], msgspec.Meta(max_length=1)]
    usage: msgspec.Raw = ABSENT
    error: None = None


decode_plain: Final = msgspec.json.Decoder(PlainChunk).decode
"""Raises `msgspec.DecodeError` for whatever is not plain, and ``RecursionError`` for what is nested too deeply."""
