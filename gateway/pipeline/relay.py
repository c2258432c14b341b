"""Passes a stream on: bytes in from the upstream, events taken out of them, and an end for the client in any case."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from adapters.errors import ProviderError
from adapters.failures import ErrorFields, read_error
from adapters.repair.stream import StreamRepair
from adapters.stream import usual_frame
from adapters.stream_pattern import Pattern
from adapters.types import FailureKind, Usage
from gateway.pipeline.call import Attempt, Call
from gateway.pipeline.clock import AttemptClock
from gateway.pipeline.event_relay import EventRelay
from gateway.pipeline.stream_buffer import StreamBuffer
from gateway.pipeline.stream_out import StreamOut
from gateway.upstream.base import UpstreamResponse
from gateway.upstream.odd_events import DONE, unframed
from gateway.upstream.sse import SseSplitter

# How long the end of the body may follow the end of the answer before the connection is given up.
_LINGER_SECONDS: Final = 1.0


class StreamRelay:
    """The sink of one upstream stream.

    It knows the bytes and the ends: what an event says is known to `EventRelay`, and what of it is the client's to
    `StreamBuffer`. Until the first content nothing is passed on, so that another target can take over unseen. From
    then on what the client gets is final: a failure becomes an error event. `done` is resolved when the stream is
    over, one way or the other; `failure` tells which, `committed` whether the client has seen any of it.
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
        self.usage: Usage | None = None
        """What the upstream says was used, as far as that was known at the last `count`."""
        self._call, self._attempt, self._out, self._clock, self._response = call, attempt, out, clock, response
        self._now = now
        self._error_of = error_of
        self._settle = settle
        self._repair = repair
        self._splitter = SseSplitter()
        self._buffer = StreamBuffer(call, attempt, out, now, model)
        self._events = EventRelay(
            call,
            attempt,
            clock,
            self._buffer,
            repair,
            now=now,
            stall_seconds=stall_seconds,
            error_of=error_of,
            progress=progress,
            usage_per_choice=usage_per_choice,
        )
        self._stretch: Pattern | None = None
        """The pattern of the events, while nothing is held anywhere, so that what comes can go on at once."""
        self._write = out.exchange.write
        self._ended = False
        clock.on_over = self._expire
        call.exchange.on_flow = self._flow

    @property
    def committed(self) -> bool:
        """Whether the client has seen any of it."""
        return self._buffer.committed

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
            self._stretch = None
        if self._ended:
            return
        events = self._events
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
                if payload == DONE:
                    self._finish(done=True)
                    return
                if event.name == "error":
                    self.stop(self._error_of(read_error(payload) or ErrorFields()))
                    return
                events.take(usual_frame(event.raw, payload), payload)
                if events.over:
                    self._finish_early()
                    return
        except ProviderError as error:
            self.stop(error)
            return
        buffer = self._buffer
        if buffer.committed and buffer.batch:
            buffer.flush()
            if self._splitter.at_boundary:
                self._stretch = events.pattern

    def finish(self, error: ProviderError | None) -> None:
        """The body is over, in good order or not."""
        if not self._ended:
            try:
                self._finish_body(error)
            except ProviderError as failure:
                self.stop(failure)
        if not self.done.done():
            self.done.set_result(None)

    def stop(self, error: ProviderError) -> None:
        """End the stream with *error* as its reason, unless it has ended; what is held of the text still goes out."""
        if self._ended:
            return
        self.count()
        self._ended = True
        buffer = self._buffer
        if buffer.committed:
            buffer.put_all(self._repair.release())
            if buffer.batch:
                buffer.flush()
        # The frames that it, and what it came from, has passed hold the relay: that would be a circle.
        error.__context__ = None
        self.failure = error.with_traceback(None)
        self._resolve()

    def count(self) -> None:
        """Note what has been told by a pattern alone. Whoever reads what the attempt has come to calls this first."""
        if not self._ended:
            self._stretch = None
            self._events.count()
            self.usage = self._events.usage

    # The ends

    def _take_all(self, payloads: Iterable[bytes]) -> None:
        """Take events one by one that did not come as such."""
        self._events.take_all(payloads)
        if self._events.over:
            self._finish_early()

    def _finish_early(self) -> None:
        """End what its events have shown to be over."""
        done = self._events.done
        self._finish(done=done)
        if not done:
            self._resolve()  # what else the upstream has to say is not waited for

    def _finish_body(self, error: ProviderError | None) -> None:
        """End what the end of the body came upon, in good order or with *error*."""
        last = None
        try:
            last = self._splitter.close()
        except ProviderError as too_large:
            error = error or too_large
        if error is None and last is not None:
            self._take_all([last.data] if last.data else unframed(last.raw) if last.data is None else [])
            if self._ended:
                return
        self._buffer.put_all(self._repair.end(done=False))
        if self._buffer.is_complete():
            self._finish()
        else:
            provider = self._attempt.target.provider
            told = f"{provider} ended the answer before it was complete."
            self.stop(error or ProviderError(FailureKind.INTERRUPTED, told))

    def _finish(self, *, done: bool = False) -> None:
        """End an answer of which no more will come; *done*: the upstream has said so. Raises where it is none."""
        self.count()
        buffer, events = self._buffer, self._events
        # Who has said nothing has not come to an end.
        if due := self._repair.end(done=done and self._attempt.text_bytes > 0):
            buffer.put_all(due)
        buffer.commit_end(self.usage)
        if self._call.wants_usage and events.usage_event is not None:
            for event in self._repair.counted(events.usage_event):
                buffer.put(event)
        self._ended = True
        self._settle(self.usage)
        buffer.end()
        # The answer is whole; only the end of the body is awaited, so that the connection can be used again.
        self._clock.content_came(self._now(), _LINGER_SECONDS)
        self._clock.on_over = self._resolve

    def _resolve(self) -> None:
        if not self.done.done():
            self.done.set_result(None)

    # What the clock and the client's connection call

    def _expire(self) -> None:
        if not self._ended:
            try:
                self._buffer.put_all(self._repair.end(done=False))
                if self._buffer.is_complete():  # nothing is missing but the upstream's own end of it
                    self._finish()
                    self._resolve()
            except ProviderError as failure:
                self.stop(failure)
        self.stop(self._clock.error(self._attempt.target.provider))

    def _flow(self, paused: bool) -> None:
        self._clock.client_waits(paused)
        if paused:
            self._response.pause()
        else:
            self._response.resume()
