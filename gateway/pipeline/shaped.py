"""An attempt that takes several requests: sends what a shape asks for, and gives what comes of it as one answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import msgspec

from adapters.errors import ProviderError
from adapters.shapes.base import Answer, Continue, Outcome, Rescue, Shape, Split
from adapters.shapes.bodies import without
from adapters.shapes.fan_out import merged
from adapters.shapes.prompt_as_chat import PromptAsChat, text_completion
from adapters.shapes.together import together
from adapters.shapes.usage import sum_of_calls
from adapters.types import Body, Operation
from gateway.pipeline.as_completion import AsCompletion
from gateway.pipeline.backend import Backend
from gateway.pipeline.call import Attempt, Call
from gateway.pipeline.child_calls import ChildCalls
from gateway.pipeline.clock import AttemptClock
from gateway.pipeline.fan_out import MergedStream
from gateway.pipeline.opened import NestedCalls, Opened
from gateway.pipeline.told import Told
from gateway.services import Services
from gateway.upstream.base import RequestHead, UpstreamResponse

_TRUE: Final = msgspec.Raw(b"true")


class ShapedCalls:
    """The shapes of one attempt and their requests. Whoever is cancelled while they run leaves none behind."""

    def __init__(
        self,
        call: Call,
        attempt: Attempt,
        backend: Backend,
        head: RequestHead,
        clock: AttemptClock,
        first_event_seconds: float,
        services: Services,
    ) -> None:
        """Each request has *first_event_seconds* for its first content; *clock* keeps that, and the whole."""
        self._calls = ChildCalls(call, attempt, backend, head, clock, first_event_seconds, services)
        self._call, self._adapter = call, backend.adapter
        self._fetcher = services.fetcher

    async def begin(self, shape: Shape, body: Body) -> UpstreamResponse:
        """The answer to *body* by way of *shape*, as if it came from one upstream."""
        if isinstance(shape, PromptAsChat):
            return await self._begin_chat(shape, body)
        outcome = await shape.answer(body, Caller(self, shape))
        if self._call.stream:
            return self._streamed(outcome, shape)
        return Told(await self._finished(outcome, shape), self._call.operation, stream=False)

    async def _begin_chat(self, shape: PromptAsChat, body: Body) -> UpstreamResponse:
        """The answer to a text completion for which a chat stands in."""
        self._calls.operation = Operation.CHAT
        outcome = await shape.answer(body, Caller(self, shape))
        if self._call.stream:
            return AsCompletion(self._streamed(outcome, shape), self._calls.heard)
        return Told(text_completion(await self._finished(outcome, shape)), self._call.operation, stream=False)

    async def begin_again(self, rescue: Rescue, shape: Shape, failure: ProviderError, body: Body) -> UpstreamResponse:
        """The answer to *body*, the client's own, which has ended in *failure*, by way of what *rescue* found."""
        self._calls.rescued(rescue, shape, failure, body)
        return await self.begin(shape, body)

    # Whole answers

    async def whole(self, body: Body, after: Shape) -> Answer:
        """The answer to *body*, a request that the shape *after* makes."""
        body = without(body, "stream", "stream_options")
        prepared = self._calls.prepare(body, after, stream=False)
        if prepared.shape is not None:
            outcome = await prepared.shape.answer(body, Caller(self, prepared.shape))
            return await self._finished(outcome, prepared.shape)
        try:
            return await self._calls.whole(body, prepared)
        except ProviderError as failure:
            found = self._calls.rescue(body, after, failure, stream=False)
            if found is None:
                raise
        rescue, shape = found
        answer = await self._finished(await shape.answer(body, Caller(self, shape)), shape)
        rescue.worked()
        return answer

    async def _finished(self, outcome: Outcome, shape: Shape) -> Answer:
        if isinstance(outcome, Split):
            return merged(await together(self.whole(body, shape) for body in outcome.bodies))
        if isinstance(outcome, Continue):
            answer = await self.whole(outcome.body, shape)
            usage = sum_of_calls(outcome.usage, answer.get("usage"))
            return answer if usage is None else {**answer, "usage": usage}
        return outcome

    async def fetch(self, url: str, most_bytes: int) -> tuple[str, bytes]:
        """What stands at an address that the client gave."""
        return await self._fetcher.fetch(url, most_bytes)

    # Streams

    def _streamed(self, outcome: Outcome, shape: Shape) -> UpstreamResponse:
        if isinstance(outcome, Split):
            return self._merged([partial(self._open, body, shape) for body in outcome.bodies])
        if isinstance(outcome, Continue):
            return self._merged([partial(self._open, outcome.body, shape)], outcome)
        return Told(outcome, self._calls.operation, stream=True)

    def _merged(self, openers: list[Callable[[], Awaitable[Opened]]], after: Continue | None = None) -> MergedStream:
        return MergedStream(openers, self._adapter, after.usage if after is not None else None)

    async def _open(self, body: Body, after: Shape) -> Opened:
        body = {**body, "stream": _TRUE}
        prepared = self._calls.prepare(body, after, stream=True)
        if prepared.shape is not None:
            outcome = await prepared.shape.answer(body, Caller(self, prepared.shape))
            return NestedCalls(self._streamed(outcome, prepared.shape))
        try:
            opened = await self._calls.send(body, prepared)
        except ProviderError as failure:
            found = self._calls.rescue(body, after, failure, stream=True)
            if found is None:
                raise
            rescue, shape = found
            outcome = await shape.answer(body, Caller(self, shape))
            rescue.worked()
            return NestedCalls(self._streamed(outcome, shape))
        return await self._calls.as_stream(opened, body, prepared)


class Caller:
    """What a shape sees of `ShapedCalls`."""

    __slots__ = ("_calls", "_shape")

    def __init__(self, calls: ShapedCalls, shape: Shape) -> None:
        self._calls = calls
        self._shape = shape

    async def whole(self, body: Body) -> Answer:
        return await self._calls.whole(body, self._shape)

    async def fetch(self, url: str, most_bytes: int) -> tuple[str, bytes]:
        return await self._calls.fetch(url, most_bytes)
