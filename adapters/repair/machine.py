"""The state machine that a stream which is not as it should be goes through: events in, events out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from adapters.draft import AnswerNeeds
from adapters.failures import ErrorFields, error_fields
from adapters.repair.asked import (
    begins_a_name,
    choices_asked_for,
    may_think,
    names_a_tool,
    offered_name,
    tools_in_text,
)
from adapters.repair.choice import ChoiceRepair
from adapters.repair.chunk import ChunkChoice, event_of, holds, object_of, value_of
from adapters.repair.envelope import Envelope
from adapters.repair.finish import FAILED, PLAIN_ENDS, STOP, settled, was_cut
from adapters.repair.message import in_old_words, mend_delta
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


def _text_of_chat(chunk: ChunkChoice) -> str:
    """What a chat's message or delta says, in a choice that should be a text."""
    said = object_of(chunk.choice.pop("message", None)) or object_of(chunk.choice.pop("delta", None))
    text = value_of(said.get("content"))
    return text if isinstance(text, str) else ""


def _of_one_choice(choices: list[dict[str, Any]]) -> bool:
    """Number the pieces of an answer with one choice, where its tokens or its events are counted instead
    (huggingface/text-generation-inference#1648, microsoft/foundry-local#263); tells whether there was need to."""
    odd = [choice for choice in choices if bytes(choice.get("index", _FIRST)) not in (b"0", b"null")]
    for choice in odd:
        choice["index"] = _FIRST
    return bool(odd)


class AnswerFailedError(Exception):
    """An answer says of itself that it failed; *fields* tell how."""

    def __init__(self, fields: ErrorFields) -> None:
        super().__init__(fields.message)
        self.fields = fields


def is_marked(event: StreamEvent, markers: Sequence[bytes]) -> bool:
    """Whether *event* holds something of the provider's own."""
    for marker in markers:  # noqa: SIM110 - at each event a generator would cost more than the search
        if marker in event.data:
            return True
    return False


class StreamMachine:
    """Repairs one stream of a chat or completion, or the pieces of a whole answer.

    An event that `may_pass` needs no `take`; all others go through it, in their order. What needs nothing comes out as
    it went in, byte for byte.
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
        self._request = request
        self._new_style = "tools" in request
        self._expected = choices_asked_for(request)
        self._alone = self._expected == 1 and (self._chat or bytes(request.get("prompt", b""))[:1] == b'"')
        """There is one choice, whatever its number; several prompts have one each."""
        self._opened = rules.opened and may_think(request, rules.off)
        self._envelope = Envelope(rules, operation, stream=stream)
        self._is_cut = partial(begins_a_name, request) if self._new_style else None
        self._tidy = partial(offered_name, request) if self._new_style else None
        self._tools = tools_in_text(request) if rules.calls_in_content else frozenset()
        self._choices: dict[int, ChoiceRepair] = {}
        self._last: ChunkChoice | None = None
        self._steady: ChoiceRepair | None = None
        """The choice of the last event, if that came out as one event and the choice had begun before."""

    def take(self, event: StreamEvent) -> list[StreamEvent]:
        """What the client gets for *event*. Raises `AnswerFailedError` where it tells of a failure."""
        self._steady = None
        top: dict[str, Any] = _decode_top(event.data)
        if self._rules.error_path[0] in top:
            self._raise_hidden_error(top)
        if self._rules.usage_path[0] in top:
            self._note_usage(top, self._rules.usage_path)
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
                self._note_usage({**top, "": {"usage": usage}}, ("", "usage"))
        out = self._end_pending(chunks)
        known = self._choices.get(chunks[0].index)
        begun = known is not None and known.started
        for chunk in chunks:
            out += self._take_choice(chunk)
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
        choice = self._choices.get(event.index)
        if choice is None or is_marked(event, self.markers) or (_DELTA in event.data) is not self._chat:
            return False
        if event.kind is _FINISH:
            return self._may_end(choice, event.finish_reasons[0][1])
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
        for choice in self._choices.values():
            choice.reason = reason
            if said:
                choice.begins_plainly(b"")
        self._look_around()

    def end(self, *, done: bool) -> list[StreamEvent]:
        """What is still due when the upstream has said all it had to say; *done*: it said so by itself."""
        out = self._end_pending(())
        if done and self._last is not None and self._rules.finish.missing is not None:
            for index, choice in self._choices.items():
                if choice.reason is None:
                    out += self._finish(self._last.like(index), choice, self._rules.finish.missing)
        in_old_words(out, self._needs)
        return [chunk.event() for chunk in out]

    def release(self) -> list[StreamEvent]:
        """Text that was held when the stream broke off."""
        if self._last is None:
            return []
        out: list[ChunkChoice] = []
        for index, choice in self._choices.items():
            if choice.reason is None:
                out += choice.release(self._last.like(index))
        in_old_words(out, self._needs)
        return [chunk.event() for chunk in out]

    def mend_top(self, top: dict[str, Any]) -> bool:
        """Put what stands around the choices of a whole answer in order; tells whether there was anything to do."""
        return self._envelope.mend(top)

    def whole_choice(self, choice: dict[str, Any]) -> list[ChunkChoice]:
        """The pieces that a choice of a whole answer consists of; its message stands as ``delta``."""
        if choice["index"] in self._choices:
            choice["index"] = len(self._choices)
        chunk = ChunkChoice(_NO_EVENT, {}, choice, chat=self._chat, changed=False, shared=False)
        out = self._take_choice(chunk) + self._end_pending(())
        found = self._choices[chunk.index]
        if found.reason is None:
            # A provider may leave the reason out; clients that wait for one would wait for ever.
            out += self._finish(chunk.like(), found, self._rules.finish.missing or STOP)
        in_old_words(out, self._needs)
        return out

    # One choice of an event

    def _take_choice(self, chunk: ChunkChoice) -> list[ChunkChoice]:
        choice = self._choices.get(chunk.index)
        if choice is None:
            choice = self._choices[chunk.index] = ChoiceRepair(
                self._rules,
                self._needs,
                self._tools,
                partial(self._envelope.call_id, chunk.index),
                chat=self._chat,
                opened=self._opened,
                is_cut=self._is_cut,
                tidy=self._tidy,
            )
        if choice.cut:
            return []
        reason, first = self._reason_of(chunk), not choice.started
        if self._chat:
            mend_delta(chunk, choice, self._rules, self._needs, new_style=self._new_style, last=reason is not None)
        else:
            choice.started = True
            if not isinstance(value_of(chunk.choice.get("text")), str):
                chunk.put("text", _text_of_chat(chunk))
        says = chunk.says_something()
        out: list[ChunkChoice] = []
        if choice.pending:
            if not says:
                return out  # the end was heard before
            (before,), choice.pending = choice.pending, []  # what looked like the end was none
            before.put_reason(None)
            out = choice.text(before, last=False)
            if choice.cut:
                return out
        if choice.reason is not None:
            if not says:
                return out
            reason = None
        chunk.put_reason(reason)
        if "finish_reason" not in chunk.choice:
            chunk.put_choice("finish_reason", None)
        if reason is None:
            return out + choice.text(chunk, last=False)
        if says or first:
            choice.pending = [chunk]
            return out
        return out + self._finish(chunk, choice, reason)

    def _end_pending(self, still_talking: Sequence[ChunkChoice]) -> list[ChunkChoice]:
        out: list[ChunkChoice] = []
        for index, choice in self._choices.items():
            if choice.pending and index not in [chunk.index for chunk in still_talking]:
                (chunk,), choice.pending = choice.pending, []
                reason = value_of(chunk.choice.get("finish_reason"))
                out += self._finish(chunk, choice, reason)
        return out

    def _finish(self, chunk: ChunkChoice, choice: ChoiceRepair, reason: str) -> list[ChunkChoice]:
        """What ends a choice: what was held of it, what completes its calls, and the reason."""
        out = choice.text(chunk, last=True)
        if choice.cut:
            return out
        if not was_cut(reason):
            further = self._completions(chunk, choice)
            if further:
                end = chunk.like()
                if chunk.says_something():
                    chunk.put_reason(None)
                    out += [*further, end]
                    chunk = end
                else:
                    out[-1:] = [*further, chunk]
        named = names_a_tool(self._request)
        choice.reason = settled(reason, len(choice.calls), choice.function_call is not None, named)
        chunk.put_reason(choice.reason)
        return out

    def _completions(self, chunk: ChunkChoice, choice: ChoiceRepair) -> list[ChunkChoice]:
        parts = choice.calls.finish()
        further = [chunk.like(tool_calls=parts)] if parts else []
        if choice.function_call is not None and not choice.function_call.strip() and not len(choice.calls):
            further.append(chunk.like(function_call={"arguments": "{}"}))
        return further

    def _reason_of(self, chunk: ChunkChoice) -> str | None:
        found = value_of(chunk.choice.get("finish_reason"))
        if found is None:
            return None
        reason = self._rules.finish.read(found)
        if reason == FAILED:
            error = value_of(chunk.choice.get("error"))
            fields = error_fields({"error": error}) if error else None
            raise AnswerFailedError(fields or ErrorFields(message=f"The answer ended with finish_reason '{found}'."))
        return reason

    def _may_end(self, choice: ChoiceRepair, reason: str) -> bool:
        """Whether *choice* ends with *reason* as it stands; it has ended then."""
        if not self.idle or reason not in PLAIN_ENDS or choice.reason is not None or self._needs is not _NO_NEEDS:
            return False
        if len(choice.calls) or choice.function_call is not None:
            return False
        choice.reason = reason
        return True

    # All around

    def _look_around(self) -> None:
        heard = len(self._choices) >= self._expected
        idle, cut, ended = heard and not self._needs.logprobs, False, heard
        for choice in self._choices.values():
            idle = idle and choice.idle
            cut = cut or choice.cut
            ended = ended and choice.reason is not None
        self.idle = idle
        if cut:
            self.over = ended

    def _note_usage(self, top: dict[str, Any], path: tuple[str, str]) -> None:
        member, name = path
        if name and member in top:
            usage = object_of(top[member]).get(name)
            if usage is not None and holds(usage):
                others = {key: value for key, value in top.items() if key != member}
                self.usage = event_of({**others, "choices": [], "usage": usage})

    def _raise_hidden_error(self, top: dict[str, Any]) -> None:
        member, name = self._rules.error_path
        if member and member in top:
            error = value_of(object_of(top[member]).get(name))
            if error:
                raise AnswerFailedError(error_fields({"error": error}) or ErrorFields())
