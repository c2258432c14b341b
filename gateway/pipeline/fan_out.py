"""Several streams told as one: their events as they come, each choice under a number of its own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from adapters.adapter import Adapter
from adapters.answers import SHAPE_ERRORS
from adapters.errors import ProviderError
from adapters.failures import ErrorFields, read_error
from adapters.repair.stream import AnswerFailedError, StreamRepair
from adapters.shapes.fan_out import choice_index
from adapters.shapes.usage import UsageFields, sum_of_calls, sum_of_choices
from adapters.stream import StreamEvent, add_usage, is_progress, read_event, without_usage
from adapters.types import EventKind, FailureKind
from gateway.pipeline.stream_out import DONE
from gateway.pipeline.tally import SentCall
from gateway.upstream.base import BodySink, UpstreamResponse
from gateway.upstream.sse import SseSplitter

_log = logging.getLogger(__name__)

_EVENTS: Final[Mapping[str, str]] = {"content-type": "text/event-stream"}
# What says which answer a chunk is of: one for all, or clients take the choices for answers of their own.
_IDENTITY: Final = ("id", "created", "system_fingerprint")


class Opened(Protocol):
    """One of the streams, from its head to its end."""

    response: UpstreamResponse

    @property
    def sent(self) -> SentCall | None:
        """Where to note what it used; None where that is done elsewhere."""

    @property
    def repair(self) -> StreamRepair | None:
        """What makes its events read like OpenAI's; None where they do."""

    def close(self) -> None:
        """Drop it, or give back what it held; may be called again."""


class MergedStream:
    """Implements `UpstreamResponse`.

    The streams are opened by `stream`, all at the same time, and each is told from when it comes. The first that fails
    fails the whole and ends the others. What they used is told once, at the end.
    """

    def __init__(
        self,
        openers: Sequence[Callable[[], Awaitable[Opened]]],
        adapter: Adapter,
        earlier_usage: UsageFields | None = None,
    ) -> None:
        """*earlier_usage* is what calls before these used, which the client is told as part of the sum."""
        self.status: int = 200
        self.headers: Mapping[str, str] = _EVENTS
        self.size = len(openers)
        self.adapter = adapter
        self.provider = adapter.target.provider
        self.paused = False
        self._openers = openers
        self._earlier_usage = earlier_usage
        self._identity: dict[str, msgspec.Raw] | None = None
        self._sink: BodySink | None = None
        self._children: list[_Child] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._running = self.size

    # The contract

    async def read(self, limit_bytes: int) -> bytes:
        raise NotImplementedError("a merged stream can only be streamed")

    def stream(self, sink: BodySink) -> None:
        self._sink = sink
        loop = asyncio.get_running_loop()
        self._children = [_Child(self, number) for number in range(self.size)]
        for child, opener in zip(self._children, self._openers, strict=True):
            task = loop.create_task(child.run(opener))
            task.add_done_callback(self._task_ended)
            self._tasks.append(task)

    def pause(self) -> None:
        self.paused = True
        for child in self._children:
            child.pause()

    def resume(self) -> None:
        self.paused = False
        for child in self._children:
            child.resume()

    def close(self) -> None:
        self._sink = None
        self._stop()

    # What the children tell

    def pass_on(self, data: bytes) -> None:
        """Events of a child, ready for the client."""
        if self._sink is not None:
            self._sink.feed(data)

    def renumbered(self, event: StreamEvent, number: int) -> bytes:
        """An event of the child *number* as one of the whole."""
        if self.size == 1 and self._earlier_usage is None:
            return event.raw
        fields = msgspec.json.decode(event.data, type=dict[str, msgspec.Raw])
        identity = self.identify(fields)
        fields |= {name: identity[name] for name in _IDENTITY if name in identity}
        choices = msgspec.json.decode(fields["choices"], type=list[dict[str, msgspec.Raw]])
        for choice in choices:
            index = choice_index(int(bytes(choice.get("index", b"0"))), number, self.size)
            choice["index"] = msgspec.Raw(b"%d" % index)
        return b"data: %b\n\n" % msgspec.json.encode({**fields, "choices": choices})

    def identify(self, fields: Mapping[str, msgspec.Raw]) -> Mapping[str, msgspec.Raw]:
        """What says which answer all chunks are of; the first of them, *fields*, decides."""
        if self._identity is None:
            self._identity = {name: fields[name] for name in ("object", "model", *_IDENTITY) if name in fields}
        return self._identity

    def child_ended(self) -> None:
        """A child is whole."""
        self._running -= 1
        sink = self._sink
        if self._running or sink is None:
            return
        usage = sum_of_calls(self._earlier_usage, sum_of_choices(child.usage for child in self._children))
        if usage is not None:
            chunk: dict[str, Any] = {**(self._identity or {}), "choices": [], "usage": usage}
            sink.feed(b"data: %b\n\n" % msgspec.json.encode(chunk))
        if self._sink is not None:
            self._sink.feed(DONE)
        if self._sink is not None:
            self._sink.finish(None)

    def fail(self, error: ProviderError) -> None:
        """A child has failed, and so has the whole."""
        sink, self._sink = self._sink, None
        self._stop()
        if sink is not None:
            sink.finish(error)

    def _stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        for child in self._children:
            child.close()

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        bug = None if task.cancelled() else task.exception()
        if bug is not None:
            _log.error("a stream of several failed", exc_info=bug)
            self.fail(ProviderError(FailureKind.SERVER_ERROR, "The gateway failed to answer. Its log says why."))


class _Child:
    """One of the streams, and the sink of its bytes."""

    def __init__(self, merged: MergedStream, number: int) -> None:
        self.usage: UsageFields | None = None
        self._merged = merged
        self._number = number
        self._opened: Opened | None = None
        self._splitter = SseSplitter()
        self._usage_event: StreamEvent | None = None
        self._finished = False
        """A choice has ended in good order."""
        self._done = False
        """The upstream said that this was all."""
        self._ended = False

    async def run(self, opener: Callable[[], Awaitable[Opened]]) -> None:
        """Open the stream and let it flow."""
        try:
            opened = await opener()
        except ProviderError as error:
            self._merged.fail(error)
            return
        self._opened = opened
        if self._merged.paused:
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
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()

    # As a sink

    def feed(self, data: bytes) -> None:
        try:
            for event in self._splitter.feed(data):
                if event.data == b"[DONE]":
                    self._done = True
                elif event.data and not self._ended:
                    self._take(event.raw, event.data)
        except ProviderError as error:
            self._fail(error)

    def finish(self, error: ProviderError | None) -> None:
        if self._ended:
            return
        try:
            last = self._splitter.close()
        except ProviderError as too_large:
            last, error = None, error or too_large
        if error is None and last is not None and last.data and last.data != b"[DONE]":
            self._take(b"data: %b\n\n" % last.data, last.data)
        if not self._ended:
            self._end(error)

    def _end(self, error: ProviderError | None) -> None:
        """The stream is over; it is whole if a choice has ended in it."""
        repair = self._opened.repair if self._opened is not None else None
        if repair is not None:
            self._pass_all(repair.end(done=self._done))
        if not self._finished:
            message = f"{self._merged.provider} ended the answer before it was complete."
            self._fail(error or ProviderError(FailureKind.INTERRUPTED, message))
            return
        self.close()
        self._merged.child_ended()

    def _take(self, raw: bytes, payload: bytes) -> None:
        adapter, opened = self._merged.adapter, self._opened
        if adapter.progress is not None and is_progress(payload, adapter.progress):
            return
        try:
            event = read_event(raw, payload)
        except (msgspec.DecodeError, UnicodeDecodeError):
            self._merged.pass_on(raw)  # for the relay to count
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
            self._merged.pass_on(raw)
            return
        if repair.usage is not None:
            told, repair.usage = repair.usage, None
            self._note_usage(told)
        self._pass_all(events)
        if repair.over and not self._ended:
            self._end(None)  # what else the upstream has to say is for nobody

    def _pass_all(self, events: list[StreamEvent]) -> None:
        for event in events:
            if self._ended:
                return
            if event.finish_reasons:
                self._finished = True
            if event.has_choices:
                self._merged.pass_on(self._merged.renumbered(event, self._number))

    def _note_usage(self, event: StreamEvent) -> None:
        if event.usage is None:
            return
        if self._merged.adapter.usage_per_choice and self._usage_event is not None:
            event = add_usage(self._usage_event, event)
        self._usage_event = event
        fields = msgspec.json.decode(event.data, type=dict[str, msgspec.Raw])
        self._merged.identify(fields)
        self.usage = msgspec.json.decode(fields["usage"])
        if self._opened is not None and self._opened.sent is not None:
            self._opened.sent.usage = event.usage

    def _fail(self, error: ProviderError) -> None:
        if self._opened is not None and self._opened.sent is not None:
            self._opened.sent.failure = error
        self._merged.fail(error)
