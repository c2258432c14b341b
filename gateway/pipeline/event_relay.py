"""Passes the events of a stream on, one by one: each is read, noted, repaired, and put where the client gets it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from adapters.answers import SHAPE_ERRORS
from adapters.errors import ProviderError
from adapters.failures import ErrorFields, read_error
from adapters.repair.misplaced import AnswerFailedError
from adapters.repair.stream import StreamRepair
from adapters.stream import StreamEvent, is_progress, read_event, usual_frame
from adapters.stream_edits import add_usage, without_usage
from adapters.stream_pattern import Pattern, find_pattern
from adapters.types import EventKind, FailureKind, Usage
from gateway.pipeline.call import Attempt, Call
from gateway.pipeline.clock import AttemptClock
from gateway.pipeline.stream_buffer import StreamBuffer
from gateway.upstream.odd_events import DONE, payloads_in

_MAX_MALFORMED: Final = 2
# What may still come behind the finish reason is usage and [DONE]; some send neither, and keep the connection.
_END_SECONDS: Final = 3.0
# A stream whose events differ in more than their text is not worth the comparison.
_MOST_SEARCHES: Final = 8
_ERROR, _OTHER, _USAGE = EventKind.ERROR, EventKind.OTHER, EventKind.USAGE


class EventRelay:
    """What the events of one stream have said so far, and the pattern by which the next is known.

    It knows nothing of the bytes between events, nor of how a stream ends: an event that is a failure raises
    `ProviderError`, and after one that is the last, `over` is set.
    """

    def __init__(
        self,
        call: Call,
        attempt: Attempt,
        clock: AttemptClock,
        buffer: StreamBuffer,
        repair: StreamRepair,
        *,
        now: Callable[[], float],
        stall_seconds: float,
        error_of: Callable[[ErrorFields], ProviderError],
        progress: bytes | None,
        usage_per_choice: bool,
    ) -> None:
        """What goes on is put into *buffer*. The other arguments are as `StreamRelay` has them."""
        self.over = False
        """Nothing more that comes is for the client."""
        self.done = False
        """It is over by a ``[DONE]`` that did not come as an event of its own; else all choices were cut at a stop."""
        self.usage: Usage | None = None
        self.usage_event: StreamEvent | None = None
        """The event that *usage* stood in."""
        self.pattern: Pattern | None = None
        """What the last event has in common with the next one, unless that is the first of another stretch."""
        self._attempt, self._clock, self._repair, self._buffer = attempt, clock, repair, buffer
        self._batch = buffer.batch
        self._now = now
        self._stall_seconds = stall_seconds
        self._error_of = error_of
        self._progress = progress
        self._usage_per_choice = usage_per_choice
        self._one_choice = call.choices == 1
        self._of_use = False
        """Something has been told by the pattern."""
        self._searches = _MOST_SEARCHES
        self._malformed = 0
        self._events_left = call.output_limit * 1.05 * call.choices + 16 if call.output_limit else float("inf")
        """How many events with content may still come; so many more than tokens are no accident."""

    def take(self, raw: bytes, payload: bytes) -> None:
        """Pass on the event *raw*, whose data are *payload*."""
        pattern = self.pattern
        if pattern is not None:
            told = pattern.told(raw)
            if told is not None:
                self._clock.content_at = self._now()
                self._batch.append(told)
                return
            self.count()
            if self._of_use:  # and has paid for the search of the next
                self._of_use = False
                self._searches += 1
        if self._progress is not None and is_progress(payload, self._progress):
            return
        try:
            event = read_event(raw, payload)
        except (msgspec.DecodeError, UnicodeDecodeError):
            self._take_apart(payload)
            return
        kind = event.kind
        if kind is _ERROR:
            raise self._error_of(read_error(payload) or ErrorFields())
        if event.has_usage:
            used = event.usage
            # Figures are not taken back by the zeros that some send with every chunk.
            if used is not None and (self.usage is None or used.prompt_tokens or used.completion_tokens):
                if self._usage_per_choice and self.usage_event is not None:
                    event = add_usage(self.usage_event, event)
                self.usage, self.usage_event = event.usage, event
            if not event.has_choices:
                return  # sent at the end, and only to those who asked
            event = without_usage(event)
        if not event.has_choices and kind is _OTHER:
            return  # it says nothing, and some clients index choices[0]
        if kind is not _OTHER and kind is not _USAGE:
            self._attempt.text_bytes += event.text_bytes
            self._events_left -= 1
            self._clock.content_came(self._now(), self._stall_seconds)
        repair, before = self._repair, len(self._batch)
        if passed := repair.passes(event):
            self._buffer.put(event)
        else:
            self.pattern = None  # what the repair has heard now may change what comes of the next
            self._put_repaired(event)
        if self._searches and len(self._batch) == before + 1 and not event.has_usage:
            slot = repair.slot(event, passed=passed)
            if slot is not None:
                self._searches -= 1
                self.pattern = find_pattern(event, self._batch[-1], slot)
        if self.pattern is not None:
            self.pattern.left = self._events_left
        if self.over:
            return
        if self._events_left < 0:
            raise self._failure(FailureKind.TOO_LARGE, "went on past the token limit it was given")
        if event.finish_reasons and self._one_choice:
            self._clock.content_came(self._now(), min(self._stall_seconds, _END_SECONDS))

    def take_all(self, payloads: Iterable[bytes]) -> None:
        """Pass on events that did not come as such, by their data."""
        for payload in payloads:
            if self.over:
                return
            if payload == DONE:
                self.over = self.done = True
            else:
                self.take(usual_frame(b"", payload), payload)

    def count(self) -> None:
        """Note what has been told by the pattern alone."""
        pattern = self.pattern
        if pattern is not None and pattern.text_bytes:
            self._attempt.text_bytes += pattern.text_bytes
            self._events_left = pattern.left
            self._of_use = True
            pattern.text_bytes = 0

    def _take_apart(self, payload: bytes) -> None:
        """Pass on what stands in the data of an event that are not JSON."""
        found = payloads_in(payload)
        if found is None:
            self._note_malformed()
        else:
            self.take_all(found)

    def _put_repaired(self, event: StreamEvent) -> None:
        repair = self._repair
        try:
            events = repair.take(event)
        except AnswerFailedError as failed:
            raise self._error_of(failed.fields) from None
        except SHAPE_ERRORS:
            self._note_malformed()
            return
        if repair.usage is not None:
            told, repair.usage = repair.usage, None
            if told.usage is not None:
                self.usage, self.usage_event = told.usage, told
        self._buffer.put_all(events)
        self.over = repair.over

    def _note_malformed(self) -> None:
        self._malformed += 1
        if self._malformed > _MAX_MALFORMED:
            raise self._failure(FailureKind.MALFORMED, "sent events that are not JSON")

    def _failure(self, kind: FailureKind, told: str) -> ProviderError:
        return ProviderError(kind, f"{self._attempt.target.provider} {told}.")
