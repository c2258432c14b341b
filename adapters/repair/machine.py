"""The state machine that a stream which is not as it should be goes through: events in, events out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from adapters.draft import AnswerNeeds
from adapters.repair.asked import choices_asked_for
from adapters.repair.choice import ChoiceRepair
from adapters.repair.choices import Choices
from adapters.repair.chunk import ChunkChoice, event_of
from adapters.repair.ends import ends_plainly
from adapters.repair.envelope import Envelope
from adapters.repair.finish import STOP
from adapters.repair.message import in_old_words
from adapters.repair.misplaced import is_marked, raise_error_at, usage_at
from adapters.repair.rules import Rules
from adapters.repair.steady import find_slot
from adapters.stream import StreamEvent
from adapters.stream_pattern import Slot
from adapters.types import EventKind, Operation

_FINISH: Final = EventKind.FINISH
_NO_NEEDS: Final = AnswerNeeds()
_DELTA: Final = b'"delta"'
_FIRST: Final = msgspec.Raw(b"0")
_NO_EVENT: Final = StreamEvent(EventKind.OTHER, b"", b"")
_decode_top = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_choices = msgspec.json.Decoder(list[dict[str, msgspec.Raw]]).decode


class StreamMachine:
    """Repairs one stream of a chat or completion, or the pieces of a whole answer.

    An event that `may_pass` needs no `take`; all others go through it, in their order. What needs nothing comes out as
    it went in, byte for byte.

    It takes events apart and makes them anew, and knows whether anything has to be looked for in the next. What stands
    around the choices is known to `Envelope`, what was heard of each choice to `Choices`.
    """

    def __init__(
        self,
        rules: Rules,
        operation: Operation,
        needs: AnswerNeeds | None,
        request: Mapping[str, msgspec.Raw],
        *,
        stream: bool = True,
    ) -> None:
        """*request* is what was asked in OpenAI's words; without *stream* the pieces are whole choices, for `mend_top`
        and `whole_choice`."""
        self.idle = False
        """Plain text needs no look at what came before it."""
        self.markers = rules.markers
        self.over = False
        """A stop was found in every choice: nothing more that comes is for the client."""
        self.usage: StreamEvent | None = None
        """The usage chunk made of figures that stood elsewhere than OpenAI's do; whoever reads it clears it."""
        self._rules = rules
        self._chat = operation is Operation.CHAT
        self._needs = needs or _NO_NEEDS
        request = self._needs.asked or request
        self._expected = choices_asked_for(request)
        self._alone = self._expected == 1 and (self._chat or bytes(request.get("prompt", b""))[:1] == b'"')
        """There is one choice, whatever its number; several prompts have one each."""
        self._envelope = Envelope(rules, operation, stream=stream)
        self._choices = Choices(rules, self._needs, request, self._envelope.call_id, chat=self._chat)
        self._last: ChunkChoice | None = None
        self._steady: ChoiceRepair | None = None
        """The choice of the last event, if that came out as one event and the choice had begun before."""

    def take(self, event: StreamEvent) -> list[StreamEvent]:
        """What the client gets for *event*. Raises `AnswerFailedError` where it tells of a failure."""
        self._steady = None
        top: dict[str, Any] = _decode_top(event.data)
        if self._rules.error_path[0] in top:
            raise_error_at(top, self._rules.error_path)
        if self._rules.usage_path[0] in top:
            self.usage = usage_at(top, self._rules.usage_path) or self.usage
        changed = self._envelope.mend(top)
        choices = _decode_choices(top.pop("choices")) if event.has_choices else []
        if not choices:
            return [event_of({**top, "choices": []})] if changed else [event]
        if self._alone:
            changed |= _of_one_choice(choices)
        chunks = [
            ChunkChoice(
                event,
                top,
                one,
                chat=self._chat,
                changed=changed,
                shared=len(choices) > 1,
            )
            for one in choices
        ]
        for chunk in chunks:
            usage = chunk.choice.pop("usage", None)
            if usage is not None:  # it belongs beside the choices (Moonshot)
                chunk.changed = True
                self.usage = usage_at({**top, "": {"usage": usage}}, ("", "usage")) or self.usage
        out = self._choices.end_pending(chunks)
        known = self._choices.by_index.get(chunks[0].index)
        begun = known is not None and known.started
        for chunk in chunks:
            out += self._choices.take(chunk)
        if self._needs.asked is not None:
            in_old_words(out, self._needs)
        self._last = chunks[-1]
        self._look_around()
        if len(chunks) == len(out) == 1 and out[0] is chunks[0]:
            if begun and self.usage is None:
                self._steady = known
            return [chunks[0].event()]
        if out == chunks and not any(chunk.changed for chunk in out):
            return [event]
        return [chunk.event() for chunk in out]

    def slot(self, event: StreamEvent) -> Slot | None:
        """Where the text stands in *event*, which was the last to be taken and came out as one, and in what came of it;
        None where the same would not come of the next event that differs in nothing but its text."""
        choice = self._steady
        if choice is None or choice.reason is not None or choice.pending or self._needs.asked is not None:
            return None
        return find_slot(event, choice, self._rules, chat=self._chat)

    def may_pass(self, event: StreamEvent) -> bool:
        """Whether *event* is plain, of this very answer, and at a place where nothing has to be done about it. If so it
        counts as told."""
        if not event.plain or event.opens or event.id != self._envelope.id:
            return False
        choice = self._choices.by_index.get(event.index)
        if choice is None or is_marked(event, self.markers) or (event.data.find(_DELTA) >= 0) is not self._chat:
            return False
        if event.kind is _FINISH:
            plain = self.idle and self._needs is _NO_NEEDS
            return plain and ends_plainly(choice, event.finish_reasons[0][1])
        if not self.idle and choice.begins_plainly(event.content):
            self._look_around()
        return self.idle

    @property
    def id(self) -> str:
        """The answer's id."""
        return self._envelope.id

    def go_on(self, opening: StreamEvent, *, said: bool, reason: str | None) -> None:
        """Take up an answer that began with *opening*, and of which only plain events have come: with *said* there was
        text among them, with *reason* the last of its only choice."""
        self.take(opening)
        for choice in self._choices.by_index.values():
            choice.reason = reason
            if said:
                choice.begins_plainly(b"")
        self._look_around()

    def counted(self, event: StreamEvent) -> list[StreamEvent]:
        """The usage chunk *event* as the client gets it. It has its answer by then: an error that the chunk tells of
        comes too late to be one of it."""
        top: dict[str, Any] = _decode_top(event.data)
        return [event_of({**top, "choices": []})] if self._envelope.mend(top) else [event]

    def end(self, *, done: bool) -> list[StreamEvent]:
        """What is still due when the upstream has said all it had to say; *done*: it said so by itself."""
        out = self._choices.end_pending()
        missing = self._rules.finish.missing
        if done and self._last is not None and missing is not None:
            out += self._choices.end_all(self._last, missing)
        in_old_words(out, self._needs)
        return [chunk.event() for chunk in out]

    def release(self) -> list[StreamEvent]:
        """Text that was held when the stream broke off."""
        if self._last is None:
            return []
        out = self._choices.release(self._last)
        in_old_words(out, self._needs)
        return [chunk.event() for chunk in out]

    def mend_top(self, top: dict[str, Any]) -> bool:
        """Put what stands around the choices of a whole answer in order; tells whether there was anything to do."""
        return self._envelope.mend(top)

    def whole_choice(self, choice: dict[str, Any]) -> list[ChunkChoice]:
        """The pieces that a choice of a whole answer consists of; its message stands as ``delta``."""
        if choice["index"] in self._choices.by_index:
            choice["index"] = len(self._choices.by_index)
        chunk = ChunkChoice(_NO_EVENT, {}, choice, chat=self._chat, changed=False, shared=False)
        out = self._choices.take(chunk) + self._choices.end_pending()
        # A provider may leave the reason out; clients that wait for one would wait for ever.
        out += self._choices.end_all(chunk, self._rules.finish.missing or STOP)
        in_old_words(out, self._needs)
        return out

    def _look_around(self) -> None:
        heard = len(self._choices.by_index) >= self._expected
        idle, cut, ended = heard and not self._needs.logprobs, False, heard
        for choice in self._choices.by_index.values():
            idle = idle and choice.idle
            cut = cut or choice.cut
            ended = ended and choice.reason is not None
        self.idle = idle
        if cut:
            self.over = ended


def _of_one_choice(choices: list[dict[str, Any]]) -> bool:
    """Number the pieces of an answer with one choice, where its tokens or its events are counted instead
    (huggingface/text-generation-inference#1648, microsoft/foundry-local#263); tells whether there was need to."""
    odd = [choice for choice in choices if bytes(choice.get("index", _FIRST)) not in (b"0", b"null")]
    for choice in odd:
        choice["index"] = _FIRST
    return bool(odd)
