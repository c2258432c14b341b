"""A body that has come before but for its messages: only they are read again.

An application sends the same parameters with every request, written by the same library. Where the bytes before and
behind the messages are the same ones, so is all that was read from them, and what stands between them has only to be
one array: then the whole is the object that it was, with other messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from adapters.types import Body
from gateway.data_plane.strict_json import read_one_level, read_one_value

if TYPE_CHECKING:
    from gateway.pipeline.call import Call

MESSAGES: Final = "messages"

_MOST_BYTES: Final = 4096
"""What may stand around the messages; every connection remembers one body."""
_MOST_SHARED: Final = 256
_SHORTEST_LIST: Final = len('[{"role":"","content":""}]')
_OPENING: Final = ord("[")
_MARK: Final = msgspec.Raw(b"0")


class KnownBody(msgspec.Struct, eq=False):
    """What was read from a body, and how to know another one that differs in nothing but its messages."""

    before: bytes
    after: bytes
    members: Body
    """The others; the messages keep their place among them."""
    model: str
    """What the client asks for, as it wrote it."""
    stream: bool
    wants_usage: bool
    output_limit: int | None
    choices: int

    def read(self, raw: bytes | bytearray, call: Call) -> bool:
        """Give *call* what is in *raw*, if that is the same but for its messages; False if not, or if they are not."""
        before, after = self.before, self.after
        if not (raw.startswith(before) and raw.endswith(after)):
            return False
        text = raw[len(before) : len(raw) - len(after)]
        if type(text) is not bytes:
            text = bytes(text)
        # From bracket to bracket: nothing of the white space around it, so that the value is all of the text.
        if len(text) < _SHORTEST_LIST or text[0] != _OPENING:
            return False
        messages = read_one_value(text)
        if messages is None or len(messages) != len(text):
            return False
        call.body = body = self.members.copy()
        body[MESSAGES] = messages
        call.known = self
        call.output_limit = self.output_limit
        if self.stream or self.choices != 1:
            call.stream, call.wants_usage, call.choices = self.stream, self.wants_usage, self.choices
        return True


class KnownBodies:
    """The bodies that may come again, shared by all connections on which they do."""

    def __init__(self) -> None:
        self._shared: dict[tuple[bytes, bytes], KnownBody] = {}

    def learn(self, raw: bytes | bytearray, call: Call, model: str) -> KnownBody | None:
        """What *raw*, as it was read for *call*, can be known again by; None where that is not worth it."""
        messages = bytes(call.body[MESSAGES])
        start = raw.find(messages)
        end = start + len(messages)
        if start < 0 or len(raw) - len(messages) > _MOST_BYTES or messages[0] != _OPENING:
            return None
        before, after = bytes(raw[:start]), bytes(raw[end:])
        known = self._shared.get((before, after))
        if known is not None:
            return known
        # Read with something else in the place of what was found, it has to be the messages that are something else.
        members = read_one_level(b"%b%b%b" % (before, _MARK, after))
        if members is None or members != {**call.body, MESSAGES: _MARK}:
            return None
        if len(self._shared) >= _MOST_SHARED:
            self._shared.clear()
        known = KnownBody(before, after, members, model, call.stream, call.wants_usage, call.output_limit, call.choices)
        self._shared[before, after] = known
        return known
