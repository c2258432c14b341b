"""Typed events of a chat or completion stream: the only currency between the steps that handle one.

An event keeps its original bytes. What must not change goes on as those bytes; only an event that has to be repaired is
decoded further and encoded again.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from adapters.types import EventKind, Usage
from adapters.usage import are_all_there, read_usage

_NOTHING: Final = msgspec.Raw(b"null")
# What a text field holds when it holds no text.
_EMPTY: Final = frozenset((b"", b"null", b'""'))
_NO_ERROR: Final = _EMPTY | {b"{}", b"false"}
MOST_SECONDS: Final = 10**11
"""A ``created`` beyond it is told in milliseconds: those of this century are more than seconds ever will be."""


class Delta(msgspec.Struct, gc=False):
    """What a chunk adds to a choice; values stay undecoded, because only their presence matters here."""

    role: Any = None
    content: msgspec.Raw = _NOTHING
    reasoning_content: msgspec.Raw = _NOTHING
    reasoning: msgspec.Raw = _NOTHING
    refusal: msgspec.Raw = _NOTHING
    tool_calls: msgspec.Raw = _NOTHING
    function_call: msgspec.Raw = _NOTHING
    audio: msgspec.Raw = _NOTHING
    images: msgspec.Raw = _NOTHING
    """As data URLs, from models that draw (OpenRouter, Gemini)."""


class Choice(msgspec.Struct, gc=False):
    """One choice of a chunk: ``delta`` in chat, ``text`` in completions."""

    index: int | None = None
    delta: Delta | None = None
    text: msgspec.Raw = _NOTHING
    finish_reason: str | msgspec.UnsetType | None = msgspec.UNSET
    logprobs: msgspec.Raw = _NOTHING
    usage: msgspec.Raw = _NOTHING
    """Moonshot's place for it."""


class Chunk(msgspec.Struct, gc=False):
    """One ``data:`` payload of a stream."""

    id: Any = None
    object: Any = None
    created: Any = None
    model: Any = None
    choices: list[Choice] | None = None
    usage: msgspec.Raw = _NOTHING
    error: msgspec.Raw = _NOTHING


class StreamEvent(msgspec.Struct, gc=False):
    """One event of a stream.

    *raw* is what the upstream sent, with its terminating blank line; *data* the payload of its ``data:`` lines.
    *text_bytes* is the length of the text it adds, for counting where a provider sends no usage.
    *finish_reasons* are those of the choices that end here, by index. *has_usage* is true also for a usage that makes
    no sense, for which *usage* is None. *plain* is an event in exactly the shape that OpenAI gives it: a piece of text,
    the first or the last of a choice, or the usage at the end. A repair has nothing to do about it, if it comes at its
    place; others may need none either, but have to be looked at.
    """

    kind: EventKind
    raw: bytes
    data: bytes
    usage: Usage | None = None
    finish_reasons: tuple[tuple[int, str], ...] = ()
    text_bytes: int = 0
    has_choices: bool = False
    has_usage: bool = False
    plain: bool = False
    id: str = ""
    """The answer's id, of plain events alone."""
    index: int = 0
    """Which choice a plain event is of."""
    opens: bool = False
    """It is a plain event that says the role."""
    content: bytes = b""
    """The text of a plain event, as JSON; of one that says the role it may be that of no text."""


_decode = msgspec.json.Decoder(Chunk).decode

_CHAT_OBJECT: Final = "chat.completion.chunk"
_TEXT_OBJECT: Final = "text_completion"

# Members of an enum are looked up through a descriptor each time; these stand on the path of every event.
_ERROR, _CONTENT, _REASONING = EventKind.ERROR, EventKind.CONTENT, EventKind.REASONING
_TOOL_DELTA, _FINISH, _USAGE, _OTHER = EventKind.TOOL_DELTA, EventKind.FINISH, EventKind.USAGE, EventKind.OTHER


def read_event(raw: bytes, data: bytes) -> StreamEvent:
    """Tell what an event carries. Raises `msgspec.DecodeError` when *data* is not a chunk (U12)."""
    try:
        chunk = _decode(data)
    except RecursionError:
        raise msgspec.DecodeError("nested too deeply") from None
    # A member that is absent is the default itself, which spares the look at what it holds.
    if chunk.error is not _NOTHING and bytes(chunk.error) not in _NO_ERROR:
        return StreamEvent(_ERROR, raw, data)
    usage, has_usage = None, chunk.usage is not _NOTHING and chunk.usage != _NOTHING
    if has_usage:
        usage = read_usage(chunk.usage)
    choices = chunk.choices
    if choices and len(choices) == 1 and not has_usage:  # as nearly all events
        choice = choices[0]
        kind, text_bytes = _read_choice(choice)
        reason = choice.finish_reason
        reasons: tuple[tuple[int, str], ...] = ()
        if reason:
            reasons = ((choice.index or 0, reason),)
            kind = _FINISH if kind is _OTHER else kind
        event = StreamEvent(kind, raw, data, None, reasons, text_bytes, True)
        if kind is _CONTENT or kind is _OTHER or kind is _FINISH:
            _note_plain(event, chunk, choice)
        return event
    if not choices:
        if choices is None and not has_usage and says_error(data):
            return StreamEvent(_ERROR, raw, data)
        event = StreamEvent(_USAGE if has_usage else _OTHER, raw, data, usage, has_usage=has_usage)
        if usage is not None and choices is not None and are_all_there(chunk.usage):
            event.plain = _is_usual(chunk, _CHAT_OBJECT)
            event.id = chunk.id if event.plain else ""
        return event
    kind, text_bytes = _OTHER, 0
    finish_reasons: tuple[tuple[int, str], ...] = ()
    for choice in choices:
        found, length = _read_choice(choice)
        text_bytes += length
        if kind is _OTHER:
            kind = found
        if choice.finish_reason:
            finish_reasons += ((choice.index or 0, choice.finish_reason),)
    if kind is _OTHER and finish_reasons:
        kind = _FINISH
    elif kind is _OTHER and has_usage:
        kind = _USAGE
    return StreamEvent(kind, raw, data, usage, finish_reasons, text_bytes, True, has_usage)


def usual_frame(raw: bytes, data: bytes) -> bytes:
    """*raw*, an event with the payload *data*, as OpenAI frames it: many clients read nothing else.

    Other line ends, no space behind ``data:``, several lines and further fields are all valid, and all of them are
    lost on one client or another (openclaw/openclaw#129905, headroomlabs-ai/headroom#649).
    """
    if len(raw) == len(data) + 8 and raw[-2:] == b"\n\n":
        return raw
    return b"data: %b\n\n" % data.replace(b"\n", b" ")


def _note_plain(event: StreamEvent, chunk: Chunk, choice: Choice) -> None:
    """Mark an event of one choice that OpenAI itself could have sent."""
    delta, kind = choice.delta, event.kind
    if delta is None:
        text, opens = bytes(choice.text), False
        usual = _is_usual(chunk, _TEXT_OBJECT)
    else:
        text, opens = bytes(delta.content), delta.role == "assistant"
        if (
            (delta.role is not None and not opens)
            or (delta.tool_calls is not _NOTHING and delta.tool_calls != _NOTHING)
            or (delta.reasoning is not _NOTHING and delta.reasoning != _NOTHING)
            or (delta.reasoning_content is not _NOTHING and delta.reasoning_content != _NOTHING)
            or (choice.logprobs is not _NOTHING and not is_usual(bytes(choice.logprobs)))
        ):
            return
        usual = _is_usual(chunk, _CHAT_OBJECT)
    if kind is _FINISH:
        fits = not opens and (delta is not None or text[:1] == b'"')  # a completion's text is never null
    else:
        fits = text[:1] == b'"' and choice.finish_reason is None and (opens or kind is _CONTENT)
    if usual and fits and choice.index is not None and choice.usage is _NOTHING:
        event.plain, event.id, event.index, event.opens, event.content = True, chunk.id, choice.index, opens, text


def _is_usual(chunk: Chunk, kind: str) -> bool:
    """Whether what stands around the choices is what OpenAI puts there."""
    return bool(
        chunk.object == kind
        and type(chunk.created) is int
        and chunk.created <= MOST_SECONDS
        and chunk.id
        and type(chunk.id) is str
        and type(chunk.model) is str
        and chunk.model
    )


def says_error(data: bytes) -> bool:
    """Whether a payload without choices is an error in one of the envelopes that hold no ``error`` member."""
    try:
        fields = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return False
    if not isinstance(fields, dict):
        return False
    if fields.get("object") == "error":
        return True
    if any(isinstance(fields.get(name), str) for name in ("message", "msg", "errmsg")):
        return any(fields.get(name) for name in ("code", "type", "status", "status_code", "errcode"))
    if isinstance(fields.get("base_resp"), dict):  # MiniMax
        return bool(fields["base_resp"].get("status_code"))
    return isinstance(fields.get("detail"), (str, list)) and bool(fields["detail"])


def _read_choice(choice: Choice) -> tuple[EventKind, int]:
    delta = choice.delta
    if delta is None:
        text = bytes(choice.text)
        return (_CONTENT, max(1, len(text) - 2)) if text not in _EMPTY else (_OTHER, 0)
    content = bytes(delta.content)
    if content not in _EMPTY:
        return _CONTENT, max(1, len(content) - 2)  # without the quotes
    for value in (delta.reasoning_content, delta.reasoning):
        if value is not _NOTHING and bytes(value) not in _EMPTY:
            return _REASONING, max(1, len(bytes(value)) - 2)
    if delta.tool_calls is not _NOTHING and bytes(delta.tool_calls) not in _NO_CALLS:
        return _TOOL_DELTA, len(bytes(delta.tool_calls))
    for value in (delta.refusal, delta.function_call, delta.audio, delta.images):
        if value is not _NOTHING and bytes(value) not in _NO_CALLS:
            return _CONTENT, len(bytes(value))
    return _OTHER, 0


_NO_CALLS: Final = _EMPTY | {b"[]"}
_NO_ALTERNATIVES: Final = (b'"top_logprobs":null', b'"top_logprobs": null')


def is_usual(logprobs: bytes) -> bool:
    """Whether the log probabilities of a chat are in OpenAI's shape, by a look at their bytes."""
    return logprobs == b"null" or (
        logprobs.startswith(b'{"content":')
        and (b'"logprob":' not in logprobs or (b'"top_logprobs":' in logprobs and b'"bytes":' in logprobs))
        and not any(nothing in logprobs for nothing in _NO_ALTERNATIVES)
    )


def is_progress(payload: bytes, marker: bytes) -> bool:
    """Whether a chunk only reports how far the prompt has been read; *marker* is made by `progress_marker`."""
    return marker in payload


def progress_marker(field: str) -> bytes:
    """The bytes of the member *field*; no string can hold them, as its quotes would be escaped."""
    return b'"%b":' % field.encode()
