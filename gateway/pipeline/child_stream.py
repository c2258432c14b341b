"""One of several streams that are told as one: what it says goes on, repaired, under a number of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol

import msgspec

from adapters.adapter import Adapter
from adapters.answers import SHAPE_ERRORS
from adapters.errors import ProviderError
from adapters.failures import ErrorFields, read_error
from adapters.repair.misplaced import AnswerFailedError
from adapters.shapes.usage import UsageFields
from adapters.stream import StreamEvent, is_progress, read_event, usual_frame
from adapters.stream_edits import add_usage, without_usage
from adapters.types import EventKind, FailureKind
from gateway.pipeline.opened import Opened
from gateway.upstream.odd_events import payloads_in, unframed
from gateway.upstream.sse import SseEvent, SseSplitter

LINGER_SECONDS: Final = 1.0
"""How long the end of a body may follow the end of its answer before the connection is given up."""


class Whole(Protocol):
    """What the streams are told as."""

    paused: bool

    @property
    def adapter(self) -> Adapter:
        """Reads what the provider says of failures."""

    def pass_on(self, data: bytes) -> None:
        """Take events that are ready for the client."""

    def renumbered(self, event: StreamEvent, number: int) -> bytes:
        """An event of the child *number* as one of the whole."""

    def identify(self, fields: Mapping[str, msgspec.Raw]) -> Mapping[str, msgspec.Raw]:
        """What says which answer all chunks are of; the first of them, *fields*, decides."""

    def child_ended(self) -> None:
        """A child is whole."""

    def child_left(self) -> None:
        """A child that is whole has given back its connection."""

    def fail(self, error: ProviderError) -> None:
        """A child has failed, and so has the whole."""


class ChildStream:
    """One of the streams, and the sink of its bytes."""

    def __init__(self, whole: Whole, number: int) -> None:
        self.usage: UsageFields | None = None
        self._whole = whole
        self._number = number
        self._opened: Opened | None = None
        self._splitter = SseSplitter()
        self._usage_event: StreamEvent | None = None
        self._finished = False
        """A choice has ended in good order."""
        self._ended = False
        self._lingering: asyncio.TimerHandle | None = None
        """While only the end of the body is awaited, so that the connection can be used again."""

    async def run(self, opener: Callable[[], Awaitable[Opened]]) -> None:
        """Open the stream and let it flow."""
        try:
            opened = await opener()
        except ProviderError as error:
            self._whole.fail(error)
            return
        self._opened = opened
        if self._whole.paused:
            opened.response.pause()
        opened.response.stream(self)

    def pause(self) -> None:
        if self._opened is not None:
            self._opened.response.pause()

    def resume(self) -> None:
        if self._opened is not None:
            self._opened.response.resume()

    def close(self) -> None:
        self._ended = True
        if self._lingering is not None:
            self._lingering.cancel()
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()

    # As a sink

    def feed(self, data: bytes) -> None:
        if self._ended:
            return
        try:
            for event in self._splitter.feed(data):
                if event.data == b"[DONE]":
                    self._end(None, done=True)
                elif event.data:
                    self._take_named(event, usual_frame(event.raw, event.data))
                elif event.data is None and event.raw[:1] != b":":
                    self._take_all(unframed(event.raw))
                if self._ended:
                    return
        except ProviderError as error:
            self._fail(error)

    def finish(self, error: ProviderError | None) -> None:
        if self._lingering is not None:
            self._leave()
        if self._ended:
            return
        try:
            last = self._splitter.close()
        except ProviderError as too_large:
            last, error = None, error or too_large
        if error is None and last is not None and last.data is None:
            self._take_all(unframed(last.raw))
        elif error is None and last is not None and last.data and last.data != b"[DONE]":
            self._take_named(last, b"data: %b\n\n" % last.data)
        if not self._ended:
            self._end(error)
        if self._lingering is not None:
            self._leave()

    def _end(self, error: ProviderError | None, *, done: bool = False) -> None:
        """The answer is over; it is whole if a choice has ended in it. *done*: the upstream said so by itself."""
        repair = self._opened.repair if self._opened is not None else None
        if repair is not None:
            self._pass_all(repair.end(done=done))
        if not self._finished:
            message = f"{self._whole.adapter.target.provider} ended the answer before it was complete."
            self._fail(error or ProviderError(FailureKind.INTERRUPTED, message))
            return
        self._ended = True
        self._lingering = asyncio.get_running_loop().call_later(LINGER_SECONDS, self._leave)
        self._whole.child_ended()

    def _leave(self) -> None:
        self.close()
        self._lingering = None
        self._whole.child_left()

    def _take_named(self, event: SseEvent, raw: bytes) -> None:
        payload = event.data or b""
        if event.name == "error":
            self._fail(self._whole.adapter.error(read_error(payload) or ErrorFields()))
        else:
            self._take(raw, payload)

    def _take_all(self, payloads: list[bytes]) -> None:
        """Take events one by one that did not come as such."""
        for payload in payloads:
            if self._ended:
                return
            if payload == b"[DONE]":
                self._end(None, done=True)
            else:
                self._take(usual_frame(b"", payload), payload)

    def _take(self, raw: bytes, payload: bytes) -> None:
        adapter, opened = self._whole.adapter, self._opened
        if adapter.progress is not None and is_progress(payload, adapter.progress):
            return
        try:
            event = read_event(raw, payload)
        except (msgspec.DecodeError, UnicodeDecodeError):
            found = payloads_in(payload)
            if found is None:
                self._whole.pass_on(raw)  # for the relay to count
            else:
                self._take_all(found)
            return
        if event.kind is EventKind.ERROR:
            self._fail(adapter.error(read_error(payload) or ErrorFields()))
            return
        if event.has_usage:
            self._note_usage(event)
            if not event.has_choices:
                return
            event = without_usage(event)
        if opened is not None and opened.sent is not None:
            opened.sent.text_bytes += event.text_bytes
        if opened is None or opened.repair is None:
            self._pass_all([event])
            return
        repair = opened.repair
        try:
            events = repair.take(event)
        except AnswerFailedError as failed:
            self._fail(adapter.error(failed.fields))
            return
        except SHAPE_ERRORS:
            self._whole.pass_on(raw)
            return
        if repair.usage is not None:
            told, repair.usage = repair.usage, None
            self._note_usage(told)
        self._pass_all(events)
        if repair.over and not self._ended:
            self._end(None)
            if self._lingering is not None:
                self._leave()  # what else the upstream has to say is for nobody

    def _pass_all(self, events: list[StreamEvent]) -> None:
        for event in events:
            if self._ended:
                return
            if event.finish_reasons:
                self._finished = True
            if event.has_choices:
                self._whole.pass_on(self._whole.renumbered(event, self._number))

    def _note_usage(self, event: StreamEvent) -> None:
        used = event.usage
        if used is None or (self.usage is not None and not (used.prompt_tokens or used.completion_tokens)):
            return  # figures are not taken back by the zeros that some send with every chunk
        if self._whole.adapter.usage_per_choice and self._usage_event is not None:
            event = add_usage(self._usage_event, event)
        self._usage_event = event
        fields = msgspec.json.decode(event.data, type=dict[str, msgspec.Raw])
        self._whole.identify(fields)
        self.usage = msgspec.json.decode(fields["usage"])
        if self._opened is not None and self._opened.sent is not None:
            self._opened.sent.usage = event.usage

    def _fail(self, error: ProviderError) -> None:
        if self._opened is not None and self._opened.sent is not None:
            self._opened.sent.failure = error
        self._whole.fail(error)
