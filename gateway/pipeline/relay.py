"""Passes a stream on: bytes in from the upstream, typed events looked at, bytes out to the client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec

from adapters.answers import SHAPE_ERRORS
from adapters.errors import ProviderError
from adapters.failures import ErrorFields, read_error
from adapters.repair.machine import AnswerFailedError
from adapters.repair.stream import StreamRepair
from adapters.stream import StreamEvent, is_progress, read_event, usual_frame
from adapters.stream_edits import add_usage, with_model, without_usage
from adapters.stream_pattern import Pattern, find_pattern
from adapters.types import EventKind, FailureKind, Operation, Usage
from gateway.pipeline.call import Attempt, Call
from gateway.pipeline.clock import AttemptClock
from gateway.pipeline.stream_out import DONE, StreamOut
from gateway.pipeline.whole import said_nothing
from gateway.upstream.base import UpstreamResponse
from gateway.upstream.odd_events import payloads_in, unframed
from gateway.upstream.sse import SseEvent, SseSplitter

_MAX_MALFORMED: Final = 2
_MAX_HELD_BYTES: Final = 262_144
# How long the end of the body may follow the end of the answer before the connection is given up.
_LINGER_SECONDS: Final = 1.0
# What may still come behind the finish reason is usage and [DONE]; some send neither, and keep the connection.
_END_SECONDS: Final = 3.0
# A stream whose events differ in more than their text is not worth the comparison.
_MOST_SEARCHES: Final = 8
_ERROR, _FINISH, _OTHER, _USAGE = EventKind.ERROR, EventKind.FINISH, EventKind.OTHER, EventKind.USAGE


class StreamRelay:
    """The sink of one upstream stream.

    Until the first content nothing is passed on, so that another target can take over unseen. From then on what the
    client gets is final: a failure becomes an error event. `done` is resolved when the stream is over, one way or
    the other; `failure` tells which, `committed` whether the client has seen any of it.
    """

    def __init__(
        self,
        call: Call,
        attempt: Attempt,
        out: StreamOut,
        clock: AttemptClock,
        response: UpstreamResponse,
        *,
        now: Callable[[], float],
        stall_seconds: float,
        error_of: Callable[[ErrorFields], ProviderError],
        settle: Callable[[Usage | None], None],
        repair: StreamRepair,
        model: bytes | None,
        progress: bytes | None = None,
        usage_per_choice: bool = False,
    ) -> None:
        """*settle* books the attempt, before the end of a whole answer is released.

        *model*, JSON, replaces the upstream's own name where the configuration asks for that. Chunks with the marker
        *progress* are for us alone. With *usage_per_choice* the usages of a stream add up.
        """
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.failure: ProviderError | None = None
        self.committed = False
        self.usage: Usage | None = None
        self._call, self._attempt, self._out, self._clock, self._response = call, attempt, out, clock, response
        self._now = now
        self._stall_seconds = stall_seconds
        self._error_of = error_of
        self._settle = settle
        self._repair = repair
        self._model = model
        self._progress = progress
        self._usage_per_choice = usage_per_choice
        self._splitter = SseSplitter()
        self._pattern: Pattern | None = None
        """What the last event has in common with the next one, unless that is the first of another stretch."""
        self._stretch: Pattern | None = None
        """The same, while nothing is held anywhere, so that what comes can go on at once."""
        self._write = out.exchange.write
        self._of_use = False
        """Something has been told by the pattern."""
        self._searches = _MOST_SEARCHES
        self._batch: list[bytes] = []
        self._held_bytes = 0
        self._malformed = 0
        self._events_left = call.output_limit * 1.05 * call.choices + 16 if call.output_limit else float("inf")
        """How many events with content may still come; so many more than tokens are no accident."""
        self._finished: set[int] = set()
        self._cut = False
        """A choice has ended for another reason than that all is said."""
        self._usage_event: StreamEvent | None = None
        self._ended = False
        clock.on_over = self._expire
        call.exchange.on_flow = self._flow

    # What the upstream's connection calls

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the body."""
        # Nearly every read is one more word, in one event, and ends here.
        stretch = self._stretch
        if stretch is not None:
            told = stretch.told(data)
            if told is not None:
                self._clock.content_at = self._out.written_at = self._now()
                self._write(told)
                return
            self.count()
        if self._ended:
            return
        try:
            for event in self._splitter.feed(data):
                payload = event.data
                if payload is None or not payload:
                    # Comments and empty events are the upstream's own keep-alive.
                    if payload is None and event.raw[:1] != b":":
                        self._take_all(unframed(event.raw))
                        if self._ended:
                            return
                    continue
                if payload == b"[DONE]":
                    self._finish(done=True)
                    return
                if event.name == "error":
                    self._fail(self._error_of(read_error(payload) or ErrorFields()))
                    return
                self._take(usual_frame(event.raw, payload), payload)
                if self._ended:
                    return
        except ProviderError as error:
            self._fail(error)
            return
        if self.committed and self._batch:
            batch = self._batch
            self._out.write(batch[0] if len(batch) == 1 else b"".join(batch), self._now())
            batch.clear()
            if self._splitter.at_boundary:
                self._stretch = self._pattern

    def count(self) -> None:
        """Note what has been told by a pattern alone. Whoever reads what the attempt has come to calls this first."""
        self._stretch = None
        pattern = self._pattern
        if pattern is not None and pattern.text_bytes:
            self._attempt.text_bytes += pattern.text_bytes
            self._events_left = pattern.left
            self._of_use = True
            pattern.text_bytes = 0

    def finish(self, error: ProviderError | None) -> None:
        """The body is over, in good order or not."""
        self.count()
        if not self._ended:
            last, error = self._last_event(error)
            if error is None and last is not None:
                self._take_all([last.data] if last.data else unframed(last.raw) if last.data is None else [])
        if not self._ended:
            self._pass_all(self._repair.end(done=False))
        if not self._ended:
            if self._is_complete():
                self._finish()
            else:
                self._fail(
                    error
                    or ProviderError(FailureKind.INTERRUPTED, self._says("ended the answer before it was complete"))
                )
        if not self.done.done():
            self.done.set_result(None)

    def _last_event(self, error: ProviderError | None) -> tuple[SseEvent | None, ProviderError | None]:
        try:
            return self._splitter.close(), error
        except ProviderError as too_large:
            return None, error or too_large

    def stop(self, error: ProviderError) -> None:
        """End the stream from our side, with *error* as its reason."""
        self.count()
        if not self._ended:
            self._fail(error)

    # One event

    def _take(self, raw: bytes, payload: bytes) -> None:
        pattern = self._pattern
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
            found = payloads_in(payload)
            if found is None:
                self._note_malformed()
            else:
                self._take_all(found)
            return
        kind = event.kind
        if kind is _ERROR:
            self._fail(self._error_of(read_error(payload) or ErrorFields()))
            return
        if event.has_usage:
            used = event.usage
            # Figures are not taken back by the zeros that some send with every chunk.
            if used is not None and (self.usage is None or used.prompt_tokens or used.completion_tokens):
                if self._usage_per_choice and self._usage_event is not None:
                    event = add_usage(self._usage_event, event)
                self.usage = event.usage
                self._usage_event = event
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
            self._pass(event)
        else:
            self._pattern = None  # what the repair has heard now may change what comes of the next
            self._repaired(event)
        if self._searches and len(self._batch) == before + 1 and not event.has_usage:
            slot = repair.slot(event, passed=passed)
            if slot is not None:
                self._searches -= 1
                self._pattern = find_pattern(event, self._batch[-1], slot)
        if self._pattern is not None:
            self._pattern.left = self._events_left
        if self._events_left < 0 and not self._ended:
            self._fail(ProviderError(FailureKind.TOO_LARGE, self._says("went on past the token limit it was given")))
        if event.finish_reasons and self._call.choices == 1 and not self._ended:
            self._clock.content_came(self._now(), min(self._stall_seconds, _END_SECONDS))

    def _take_all(self, payloads: list[bytes]) -> None:
        """Take events one by one that did not come as such."""
        for payload in payloads:
            if self._ended:
                return
            if payload == b"[DONE]":
                self._finish(done=True)
            else:
                self._take(usual_frame(b"", payload), payload)

    def _note_malformed(self) -> None:
        self._malformed += 1
        if self._malformed > _MAX_MALFORMED:
            self._fail(ProviderError(FailureKind.MALFORMED, self._says("sent events that are not JSON")))

    def _repaired(self, event: StreamEvent) -> None:
        repair = self._repair
        try:
            events = repair.take(event)
        except AnswerFailedError as failed:
            self._fail(self._error_of(failed.fields))
            return
        except SHAPE_ERRORS:
            self._note_malformed()
            return
        if repair.usage is not None:
            told, repair.usage = repair.usage, None
            if told.usage is not None:
                self.usage, self._usage_event = told.usage, told
        self._pass_all(events)
        if repair.over and not self._ended:
            # The client has its answer; what else the upstream has to say is not waited for.
            self._finish()
            self._resolve()

    def _pass_all(self, events: list[StreamEvent]) -> None:
        for event in events:
            if not self._ended:
                self._pass(event)

    def _pass(self, event: StreamEvent) -> None:
        """Give the client an event that is as it should be."""
        if event.finish_reasons:
            self._finished.update(index for index, _ in event.finish_reasons)
            self._cut = self._cut or any(reason != "stop" for _, reason in event.finish_reasons)
        if self._model is not None:
            event = with_model(event, self._model)
        self._batch.append(event.raw)
        if event.kind is _OTHER or event.kind is _USAGE or (event.kind is _FINISH and self._call.others):
            self._hold_back(len(event.raw))
        elif not self.committed:
            self.committed = True
            self._attempt.first_content = self._now()

    def _hold_back(self, size: int) -> None:
        if not self.committed:
            self._held_bytes += size
            if self._held_bytes > _MAX_HELD_BYTES:
                self._fail(ProviderError(FailureKind.TOO_LARGE, self._says("sent too much before any content")))

    # The end

    def _is_complete(self) -> bool:
        return len(self._finished) >= self._call.choices

    def _may_be_asked_elsewhere(self) -> bool:
        """Whether this is no answer while another target could give one: it has ended without a word."""
        call = self._call
        return call.others and call.operation is Operation.CHAT and not self._attempt.text_bytes and not self._cut

    def _finish(self, *, done: bool = False) -> None:
        # Who has said nothing has not come to an end.
        self._pass_all(self._repair.end(done=done and self._attempt.text_bytes > 0))
        if not self._is_complete() and not (self.committed and self._finished):
            self._fail(ProviderError(FailureKind.INTERRUPTED, self._says("ended the answer without a finish_reason")))
            return
        if not self.committed:
            if self._may_be_asked_elsewhere():
                self._fail(said_nothing(self._attempt.target.provider, self.usage))
                return
            self.committed = True
            self._attempt.first_content = self._now()
        if self._call.wants_usage and self._usage_event is not None:
            for event in self._repair.counted(self._usage_event):
                self._batch.append((with_model(event, self._model) if self._model is not None else event).raw)
        self._batch.append(DONE)
        self._ended = True
        self._settle(self.usage)
        self._out.write(b"".join(self._batch), self._now())
        self._out.end()
        # The answer is whole; only the end of the body is awaited, so that the connection can be used again.
        self._clock.content_came(self._now(), _LINGER_SECONDS)
        self._clock.on_over = self._resolve

    def _fail(self, error: ProviderError) -> None:
        if self._ended:
            return
        self._ended = True
        if self.committed:
            self._batch += [event.raw for event in self._repair.release()]
        if self.committed and self._batch:
            self._out.write(b"".join(self._batch), self._now())
        self.failure = error
        self._resolve()

    def _resolve(self) -> None:
        if not self.done.done():
            self.done.set_result(None)

    def _expire(self) -> None:
        if not self._ended:
            self._pass_all(self._repair.end(done=False))
            if self._is_complete():  # nothing is missing but the upstream's own end of it
                self._finish()
                self._resolve()
        self.stop(self._clock.error(self._attempt.target.provider))

    def _flow(self, paused: bool) -> None:
        self._clock.client_waits(paused)
        if paused:
            self._response.pause()
        else:
            self._response.resume()

    def _says(self, what: str) -> str:
        return f"{self._attempt.target.provider} {what}."
