"""Typed events of a chat or completion stream: the only currency between the steps that handle one.

An event keeps its original bytes. What must not change goes on as those bytes; only an event that has to be repaired is
decoded further and encoded again.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from adapters.plain_event import ABSENT, CHAT_OBJECT, PlainChunk, decode_plain
from adapters.types import EventKind, Usage
from adapters.usage import are_all_there, read_usage

# What a text field holds when it holds no text.
_EMPTY: Final = frozenset((b"", b"null", b'""'))
_NO_REASONS: Final[tuple[tuple[int, str], ...]] = ()
_NO_ERROR: Final = _EMPTY | {b"{}", b"false"}


class Delta(msgspec.Struct, gc=False):
    """What a chunk adds to a choice; values stay undecoded, because only their presence matters here."""

    role: Any = None
    content: msgspec.Raw = ABSENT
    reasoning_content: msgspec.Raw = ABSENT
    reasoning: msgspec.Raw = ABSENT
    refusal: msgspec.Raw = ABSENT
    tool_calls: msgspec.Raw = ABSENT
    function_call: msgspec.Raw = ABSENT
    audio: msgspec.Raw = ABSENT
    images: msgspec.Raw = ABSENT
    """As data URLs, from models that draw (OpenRouter, Gemini)."""


class Choice(msgspec.Struct, gc=False):
    """One choice of a chunk: ``delta`` in chat, ``text`` in completions."""

    index: int | None = None
    delta: Delta | None = None
    text: msgspec.Raw = ABSENT
    finish_reason: str | msgspec.UnsetType | None = msgspec.UNSET
    logprobs: msgspec.Raw = ABSENT
    usage: msgspec.Raw = ABSENT
    """Moonshot's place for it."""


class Chunk(msgspec.Struct, gc=False):
    """One ``data:`` payload of a stream."""

    choices: list[Choice] | None = None
    usage: msgspec.Raw = ABSENT
    error: msgspec.Raw = ABSENT


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

# Members of an enum are looked up through a descriptor each time; these stand on the path of every event.
_ERROR, _CONTENT, _REASONING = EventKind.ERROR, EventKind.CONTENT, EventKind.REASONING
_TOOL_DELTA, _FINISH, _USAGE, _OTHER = EventKind.TOOL_DELTA, EventKind.FINISH, EventKind.USAGE, EventKind.OTHER


def read_event(raw: bytes, data: bytes) -> StreamEvent:
    """Tell what an event carries. Raises `msgspec.DecodeError` when *data* is not a chunk (U12)."""
    try:
        chunk = decode_plain(data)
    except (msgspec.DecodeError, RecursionError):
        return _read_any(raw, data)
    return _read_plain(raw, data, chunk) or _read_any(raw, data)


def _read_plain(raw: bytes, data: bytes, chunk: PlainChunk) -> StreamEvent | None:
    """The event that OpenAI itself could have sent as *chunk*; None where it would not."""
    used, chat = chunk.usage, chunk.object == CHAT_OBJECT
    is_used = used is not ABSENT and used != ABSENT
    if not chunk.choices:
        usage = read_usage(used) if chat and is_used and are_all_there(used) else None
        if usage is None:
            return None
        return StreamEvent(_USAGE, raw, data, usage, has_usage=True, plain=True, id=chunk.id)
    choice = chunk.choices[0]
    delta, reason, logprobs = choice.delta, choice.finish_reason, choice.logprobs
    if is_used or chat is (delta is None) or (logprobs is not ABSENT and not is_usual(bytes(logprobs))):
        return None
    text, opens = (bytes(choice.text), False) if delta is None else (bytes(delta.content), delta.role is not None)
    says = text not in _EMPTY
    kind, reasons = _CONTENT if says else _OTHER, _NO_REASONS
    if reason is None:
        if text[:1] != b'"' or not (says or opens):
            return None
    elif reason and not says and not opens and (chat or text[:1] == b'"'):  # a completion's text is never null
        kind, reasons = _FINISH, ((choice.index, reason),)
    else:
        return None
    # Without the quotes; by place, which takes half as long as by name.
    length = max(1, len(text) - 2) if says else 0
    return StreamEvent(kind, raw, data, None, reasons, length, True, False, True, chunk.id, choice.index, opens, text)


def _read_any(raw: bytes, data: bytes) -> StreamEvent:
    """Look more closely at an event."""
    try:
        chunk = _decode(data)
    except RecursionError:
        raise msgspec.DecodeError("nested too deeply") from None
    # A member that is absent is the default itself, which spares the look at what it holds.
    if chunk.error is not ABSENT and bytes(chunk.error) not in _NO_ERROR:
        return StreamEvent(_ERROR, raw, data)
    usage, has_usage = None, chunk.usage is not ABSENT and chunk.usage != ABSENT
    if has_usage:
        usage = read_usage(chunk.usage)
    choices = chunk.choices
    if not choices:
        if choices is None and not has_usage and says_error(data):
            return StreamEvent(_ERROR, raw, data)
        return StreamEvent(_USAGE if has_usage else _OTHER, raw, data, usage, has_usage=has_usage)
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
        if value is not ABSENT and bytes(value) not in _EMPTY:
            return _REASONING, max(1, len(bytes(value)) - 2)
    if delta.tool_calls is not ABSENT and bytes(delta.tool_calls) not in _NO_CALLS:
        return _TOOL_DELTA, len(bytes(delta.tool_calls))
    for value in (delta.refusal, delta.function_call, delta.audio, delta.images):
        if value is not ABSENT and bytes(value) not in _NO_CALLS:
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
    return payload.find(marker) >= 0


def progress_marker(field: str) -> bytes:
    """The bytes of the member *field*; no string can hold them, as its quotes would be escaped."""
    return b'"%b":' % field.encode()
