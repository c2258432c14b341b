"""One choice of one event, taken apart as far as a repair needs it."""

from __future__ import annotations

import math
import re
from typing import Any, Final

import msgspec

from adapters.stream import StreamEvent, read_event

_EMPTY: Final = frozenset((b"null", b'""', b"[]", b"{}"))
_SAYS: Final = ("content", "reasoning_content", "tool_calls", "function_call", "refusal", "audio", "images")
_NUMBER: Final = re.compile(r"[0-9]+(?:\.[0-9]*)?")
_decode_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_any = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def value_of(value: Any) -> Any:
    """What a member holds, decoded if it was not yet."""
    return _decode_any(value) if isinstance(value, msgspec.Raw) else value


def holds(value: Any) -> bool:
    """Whether a member says anything."""
    return bytes(value) not in _EMPTY if isinstance(value, msgspec.Raw) else bool(value)


def number_of(value: Any) -> int | float | None:
    """The number that a value is or spells; None for what is none, or is beyond all bounds."""
    if isinstance(value, str):
        value = float(value) if _NUMBER.fullmatch(value) else None
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and value != math.inf
    return value if is_number else None


def object_of(value: Any) -> dict[str, Any]:
    """The members of an object; none of what is no object."""
    if isinstance(value, msgspec.Raw):
        return _decode_object(value) if bytes(value)[:1] == b"{" else {}
    return value if isinstance(value, dict) else {}


def event_of(fields: dict[str, Any]) -> StreamEvent:
    """The event that says *fields*."""
    data = _encode(fields)
    return read_event(b"data: " + data + b"\n\n", data)


def _is_object(value: Any) -> bool:
    return bytes(value)[:1] == b"{" if isinstance(value, msgspec.Raw) else isinstance(value, dict)


class ChunkChoice:
    """A choice that can be changed. As long as nothing is, `event` is the event that came, byte for byte."""

    __slots__ = ("_shared", "_source", "changed", "chat", "choice", "delta", "index", "top")

    def __init__(
        self,
        source: StreamEvent,
        top: dict[str, Any],
        choice: dict[str, Any],
        *,
        chat: bool,
        changed: bool,
        shared: bool,
    ) -> None:
        """*top* are the other members of the event; *shared*: other choices came in the same event."""
        self._source, self.top, self._shared = source, top, shared
        self.chat, self.choice, self.changed = chat, choice, changed
        self.delta = choice
        if chat:
            if not _is_object(choice.get("delta")):
                text = {"content": choice.pop("text")} if holds(choice.get("text")) else {}
                choice["delta"] = choice.pop("message", text)
                self.changed = True
            self.delta = object_of(choice["delta"])
        found = value_of(choice.get("index"))
        self.index = found if isinstance(found, int) and not isinstance(found, bool) else 0
        if self.index != found:
            self.put_choice("index", self.index)

    @property
    def text(self) -> str:
        """The answer's text in it."""
        value = value_of(self.delta.get("content" if self.chat else "text"))
        return value if isinstance(value, str) else ""

    def put_text(self, text: str) -> None:
        """Give it another text; none takes the member away from a chat's delta."""
        if text and text == self.text:
            return
        if not self.chat:
            self.put("text", text)
        elif text:
            self.put("content", text)
        else:
            self.take("content")

    def put(self, name: str, value: Any) -> None:
        """Set a member of the delta."""
        self.delta[name] = value
        self.changed = True

    def take(self, name: str) -> Any:
        """Remove a member of the delta."""
        self.changed = True
        return self.delta.pop(name, None)

    def put_choice(self, name: str, value: Any) -> None:
        """Set a member of the choice."""
        self.choice[name] = value
        self.changed = True

    def put_reason(self, reason: str | None) -> None:
        """Set the finish reason, if it is not that already."""
        if value_of(self.choice.get("finish_reason")) != reason:
            self.put_choice("finish_reason", reason)

    def says_something(self) -> bool:
        """Whether there is anything in it for a reader."""
        if not self.chat:
            return holds(self.choice.get("text"))
        delta = self.delta
        for name in _SAYS:  # noqa: SIM110 - for each event that is repaired a generator would cost five calls more
            if name in delta and holds(delta[name]):
                return True
        return False

    def like(self, index: int | None = None, **delta: Any) -> ChunkChoice:
        """A further piece of the same choice, or of another, with nothing in it but *delta*."""
        choice: dict[str, Any] = {"index": self.index if index is None else index, "finish_reason": None}
        choice |= {"delta": delta} if self.chat else {"text": "", "logprobs": None, **delta}
        return ChunkChoice(self._source, self.top, choice, chat=self.chat, changed=True, shared=False)

    def event(self) -> StreamEvent:
        """The event that says it."""
        if not self.changed and not self._shared:
            return self._source
        choice = self.choice
        if self.chat:
            choice["delta"] = self.delta
        choice.setdefault("finish_reason", None)
        return event_of({**self.top, "choices": [choice]})
