"""What providers tell elsewhere than OpenAI does: what was used, and that an answer failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adapters.failures import ErrorFields, error_fields
from adapters.repair.chunk import event_of, holds, object_of, value_of
from adapters.stream import StreamEvent


class AnswerFailedError(Exception):
    """An answer says of itself that it failed; *fields* tell how."""

    def __init__(self, fields: ErrorFields) -> None:
        super().__init__(fields.message)
        self.fields = fields


def is_marked(event: StreamEvent, markers: Sequence[bytes]) -> bool:
    """Whether *event* holds something of the provider's own."""
    # A generator would cost more than the search, and so would `in`, which asks bytes whether they are a number first.
    for marker in markers:  # noqa: SIM110
        if event.data.find(marker) >= 0:
            return True
    return False


def usage_at(top: dict[str, Any], path: tuple[str, str]) -> StreamEvent | None:
    """The usage chunk of figures that stand in a member of a member of an event, which *path* names; None if none do.

    *top* are the other members of that event, as they are to be in the chunk.
    """
    member, name = path
    if name and member in top:
        usage = object_of(top[member]).get(name)
        if usage is not None and holds(usage):
            others = {key: value for key, value in top.items() if key != member}
            return event_of({**others, "choices": [], "usage": usage})
    return None


def raise_error_at(top: dict[str, Any], path: tuple[str, str]) -> None:
    """Raise `AnswerFailedError` for an error that stands in a member of a member, which *path* names."""
    member, name = path
    if member and member in top:
        error = value_of(object_of(top[member]).get(name))
        if error:
            raise AnswerFailedError(error_fields({"error": error}) or ErrorFields())


def error_of_choice(choice: dict[str, Any], reason: object) -> AnswerFailedError:
    """The failure of a *choice* that ended with *reason*, which is none to end."""
    error = value_of(choice.get("error"))
    fields = error_fields({"error": error}) if error else None
    return AnswerFailedError(fields or ErrorFields(message=f"The answer ended with finish_reason '{reason}'."))
