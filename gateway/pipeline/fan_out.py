"""Several streams told as one: their events as they come, each choice under a number of its own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from adapters.adapter import Adapter
from adapters.errors import ProviderError
from adapters.shapes.fan_out import choice_index
from adapters.shapes.usage import UsageFields, sum_of_calls, sum_of_choices
from adapters.stream import StreamEvent
from adapters.types import FailureKind
from gateway.pipeline.child_stream import ChildStream
from gateway.pipeline.opened import Opened
from gateway.pipeline.stream_out import DONE
from gateway.upstream.base import BodySink

_log = logging.getLogger(__name__)

_EVENTS: Final[Mapping[str, str]] = {"content-type": "text/event-stream"}
# What says which answer a chunk is of: one for all, or clients take the choices for answers of their own.
_IDENTITY: Final = ("id", "created", "system_fingerprint")


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
        self.paused = False
        self._openers = openers
        self._earlier_usage = earlier_usage
        self._identity: dict[str, msgspec.Raw] | None = None
        self._sink: BodySink | None = None
        self._children: list[ChildStream] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._running = self._connected = self.size

    # The contract

    async def read(self, limit_bytes: int) -> bytes:
        raise NotImplementedError("a merged stream can only be streamed")

    def stream(self, sink: BodySink) -> None:
        self._sink = sink
        loop = asyncio.get_running_loop()
        self._children = [ChildStream(self, number) for number in range(self.size)]
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
        self._tasks, self._children, self._openers = [], [], ()

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

    def child_left(self) -> None:
        """A child that is whole has given back its connection."""
        self._connected -= 1
        if not self._connected and self._sink is not None:
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
