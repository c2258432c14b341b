"""A head that has come before, known again by its bytes whatever length of the body stands in it.

Both sides of the gateway see the same heads again and again: clients that keep a connection send theirs with every
request, and an engine answers in the same words. What was parsed and checked once needs no second look.
"""

from __future__ import annotations

from typing import Final

import msgspec

_MOST_DIGITS: Final = 12


class SameHead(msgspec.Struct, eq=False):
    """A head, split where the length of the body stands. It is in order, and nothing else in it says how a body comes.

    A message came whole if the length that stands there, without zeros before it, is that of what follows the head.
    """

    before: bytes
    after: bytes
    """From the end of the length to the blank line."""
    digits: int
    """How many the length had last time."""

    def body_in(self, data: bytes) -> bytes | None:
        """The body of a message with this head that *data* holds, whole and nothing else; None if it does not."""
        before, after = self.before, self.after
        start = len(before)
        end = start + self.digits
        if data.startswith(before) and data.startswith(after, end):
            body = data[end + len(after) :]
            if data[start:end] == b"%d" % len(body):
                return body
        digits = data.find(b"\r", start, start + _MOST_DIGITS + 1) - start
        if digits <= 0 or digits == self.digits:
            return None
        self.digits = digits
        return self.body_in(data)
