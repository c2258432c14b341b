"""One stream on its way to the client: what is as it should be goes by, the rest through the state machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from adapters.draft import AnswerNeeds
from adapters.plain_answer import TAG_OR_CALL
from adapters.repair.asked import choices_asked_for
from adapters.repair.finish import PLAIN_ENDS
from adapters.repair.machine import StreamMachine
from adapters.repair.misplaced import is_marked
from adapters.repair.rules import Rules
from adapters.stream import StreamEvent
from adapters.stream_edits import usage_event
from adapters.stream_pattern import CONTENT, TEXT, Slot
from adapters.types import EventKind, Operation

_NO_TEXT: Final = b'""'
_CONTENT, _FINISH = EventKind.CONTENT, EventKind.FINISH


class StreamRepair:
    """Repairs one stream of a chat or completion.

    An event that `passes` needs no `take`; all others go through it, in their order. What needs nothing comes out as it
    went in, byte for byte.

    As long as all events of an answer are plain, the state machine is not even made: all that it would have to know is
    the first of them, whether text has come, and with what reason the choice has ended.
    """

    __slots__ = (
        "_chat", "_ended", "_machine", "_needs", "_opening", "_operation", "_request", "_rules", "_said", "_text_slot",
        "over", "usage",
    )  # fmt: skip

    def __init__(
        self, rules: Rules, operation: Operation, needs: AnswerNeeds | None, request: Mapping[str, msgspec.Raw]
    ) -> None:
        """*request* is what was asked in OpenAI's words."""
        self.over = False
        """A stop was found in every choice: nothing more that comes is for the client."""
        self.usage: StreamEvent | None = None
        """The usage chunk made of figures that stood elsewhere than OpenAI's do; whoever reads it clears it."""
        self._rules, self._operation, self._needs, self._request = rules, operation, needs, request
        self._chat = operation is Operation.CHAT
        self._text_slot = CONTENT if self._chat else TEXT
        self._opening: StreamEvent | None = None
        self._said = not self._chat
        """There was text, and it began like an answer; or there will be none."""
        self._ended: str | None = None
        self._machine: StreamMachine | None = None
        if (
            needs is not None
            or rules.opened
            or (rules.calls_in_content and "tools" in request)
            or ("n" in request and choices_asked_for(request) != 1)
        ):
            self._engage()

    def passes(self, event: StreamEvent) -> bool:
        """Whether nothing has to be done about *event*. If so it counts as told; else it has to be taken."""
        machine = self._machine
        if machine is not None:
            return machine.may_pass(event)
        if not event.plain or event.index or is_marked(event, self._rules.markers):
            return False
        if event.opens and not self._chat:
            return False  # a chat where a text was asked for
        opening = self._opening
        if opening is None:
            if event.kind is _FINISH or not (event.opens or not self._chat) or not self._may_say(event):
                return False
            self._opening = event
            return True
        if event.id != opening.id or event.opens:
            return False
        if event.kind is not _FINISH:
            return self._said or self._may_say(event)
        ((_, reason),) = event.finish_reasons
        if self._ended is not None or reason not in PLAIN_ENDS:
            return False
        self._ended, self._said = reason, True  # no tag is looked for in what follows an end
        return True

    def take(self, event: StreamEvent) -> list[StreamEvent]:
        """What the client gets for *event*. Raises `AnswerFailedError` where it tells of a failure."""
        machine = self._machine or self._engage()
        told = machine.take(event)
        self.over = machine.over
        if machine.usage is not None:
            self.usage, machine.usage = machine.usage, None
        return told

    def counted(self, event: StreamEvent) -> list[StreamEvent]:
        """The last event of a stream whose usage stood in *event*."""
        if event.plain and not is_marked(event, self._rules.markers):
            machine, opening = self._machine, self._opening
            if event.id == (machine.id if machine is not None else opening.id if opening is not None else ""):
                return [event]
        machine = self._machine or self._engage()
        return machine.counted(usage_event(event))

    def slot(self, event: StreamEvent, *, passed: bool) -> Slot | None:
        """Where the text stands in *event*, which has *passed* or else was the last to be taken and came out as one,
        and in what came of it; None where the same would not come of the next that differs in nothing but its text."""
        if passed:
            return self._text_slot if event.kind is _CONTENT and not event.opens else None
        return self._machine.slot(event) if self._machine is not None else None

    def end(self, *, done: bool) -> list[StreamEvent]:
        """What is still due when the upstream has said all it had to say; *done*: it said so by itself."""
        if self._machine is None and (self._opening is None or self._ended is not None or not done):
            return []
        return (self._machine or self._engage()).end(done=done)

    def release(self) -> list[StreamEvent]:
        """Text that was held when the stream broke off."""
        return self._machine.release() if self._machine is not None else []

    def _may_say(self, event: StreamEvent) -> bool:
        """Whether the first text is one in which nothing has to be looked for; none is one too, if the role is said."""
        if not self._said and event.content != _NO_TEXT:
            if event.content[:2] in TAG_OR_CALL:
                return False
            self._said = True
        return True

    def _engage(self) -> StreamMachine:
        self._machine = machine = StreamMachine(self._rules, self._operation, self._needs, self._request)
        if self._opening is not None:
            machine.go_on(self._opening, said=self._said, reason=self._ended)
        return machine
