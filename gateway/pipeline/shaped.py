"""An attempt that takes several requests: sends what a shape asks for, and gives what comes of it as one answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import msgspec

from adapters.adapter import Adapter, Prepared
from adapters.draft import Draft
from adapters.errors import ProviderError
from adapters.learned import LearnedFeatures, LearnedRefusals
from adapters.repair.stream import StreamRepair
from adapters.shapes.base import Answer, Continue, Outcome, Rescue, Shape, Split
from adapters.shapes.bodies import without
from adapters.shapes.fan_out import merged
from adapters.shapes.prompt_as_chat import PromptAsChat, text_completion
from adapters.shapes.together import together
from adapters.shapes.usage import sum_of_calls
from adapters.types import Adjustment, Body, Operation
from gateway.pipeline.as_completion import AsCompletion
from gateway.pipeline.backend import Backend
from gateway.pipeline.call import Attempt, Call
from gateway.pipeline.clock import AttemptClock
from gateway.pipeline.fan_out import MergedStream
from gateway.pipeline.opened import NestedCalls, Opened, OpenedCall
from gateway.pipeline.places import Places
from gateway.pipeline.tally import Tally
from gateway.pipeline.told import Told
from gateway.pipeline.whole import MAX_ANSWER_BYTES, is_stream, read_as_stream, read_refusal, read_whole
from gateway.services import Services
from gateway.upstream.base import RequestHead, UpstreamResponse

_TRUE: Final = msgspec.Raw(b"true")
_MOST_RESCUES: Final = 4


class ShapedCalls:
    """The requests of one attempt. Whoever is cancelled while they run leaves none behind."""

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
        self.tally = attempt.tally = Tally()
        self._call, self._attempt, self._backend, self._head, self._clock = call, attempt, backend, head, clock
        self._first_event_seconds = first_event_seconds
        self._operation = call.operation
        self._services = services
        self._hop = services.hop_header_after(call.hops) if call.hops else services.hop_header
        self._places = Places(backend.concurrency)
        self._rescuing: dict[Shape, Rescue] = {}

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
        self._operation = Operation.CHAT
        outcome = await shape.answer(body, Caller(self, shape))
        if self._call.stream:
            return AsCompletion(self._streamed(outcome, shape), self._heard)
        return Told(text_completion(await self._finished(outcome, shape)), self._call.operation, stream=False)

    def _heard(self) -> None:
        self._clock.content_came(self._services.clock(), self._first_event_seconds)

    async def begin_again(self, rescue: Rescue, shape: Shape, failure: ProviderError, body: Body) -> UpstreamResponse:
        """The answer to *body*, the client's own, which has ended in *failure*, by way of what *rescue* found."""
        attempt = self._attempt
        refused = self.tally.begin(body)
        refused.sent, refused.status, refused.failure = attempt.sent, attempt.status, failure
        refused.usage = failure.used
        attempt.status = None
        self._clock.wait_again()
        self._rescuing[shape] = rescue
        self._tell((Adjustment(shape.param, shape.action),))
        return await self.begin(shape, body)

    # Whole answers

    async def whole(self, body: Body, after: Shape) -> Answer:
        """The answer to *body*, a request that the shape *after* makes."""
        body = without(body, "stream", "stream_options")
        prepared = self._prepare(body, after, stream=False)
        if prepared.shape is not None:
            outcome = await prepared.shape.answer(body, Caller(self, prepared.shape))
            return await self._finished(outcome, prepared.shape)
        try:
            return await self._one(body, prepared)
        except ProviderError as failure:
            found = self._rescue(body, after, failure, stream=False)
            if found is None:
                raise
        rescue, shape = found
        answer = await self._finished(await shape.answer(body, Caller(self, shape)), shape)
        rescue.worked()
        return answer

    async def _one(self, body: Body, prepared: Prepared) -> Answer:
        opened = await self._send(body, prepared)
        try:
            raw = await opened.response.read(MAX_ANSWER_BYTES)
            read = read_whole(raw, opened.response, self._backend.adapter, self._operation, prepared.needs, body)
        except ProviderError as failure:
            opened.sent.failure, opened.sent.usage = failure, failure.used
            raise
        finally:
            opened.close()
        opened.sent.usage = read.usage
        opened.sent.text_bytes = read.text_bytes
        whole: Answer = msgspec.json.decode(read.body)
        return whole

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
        return await self._services.fetcher.fetch(url, most_bytes)

    # Streams

    def _streamed(self, outcome: Outcome, shape: Shape) -> UpstreamResponse:
        if isinstance(outcome, Split):
            return self._merged([partial(self._open, body, shape) for body in outcome.bodies])
        if isinstance(outcome, Continue):
            return self._merged([partial(self._open, outcome.body, shape)], outcome)
        return Told(outcome, self._operation, stream=True)

    def _merged(self, openers: list[Callable[[], Awaitable[Opened]]], after: Continue | None = None) -> MergedStream:
        return MergedStream(openers, self._backend.adapter, after.usage if after is not None else None)

    async def _open(self, body: Body, after: Shape) -> Opened:
        body = {**body, "stream": _TRUE}
        prepared = self._prepare(body, after, stream=True)
        if prepared.shape is not None:
            outcome = await prepared.shape.answer(body, Caller(self, prepared.shape))
            return NestedCalls(self._streamed(outcome, prepared.shape))
        try:
            opened = await self._send(body, prepared)
        except ProviderError as failure:
            found = self._rescue(body, after, failure, stream=True)
            if found is None:
                raise
            rescue, shape = found
            outcome = await shape.answer(body, Caller(self, shape))
            rescue.worked()
            return NestedCalls(self._streamed(outcome, shape))
        try:
            if not is_stream(opened.response):
                provider = self._attempt.target.provider
                events = await read_as_stream(opened.response, self._operation, provider)
                opened.response = Told.of_events(events)
            opened.repair = self._repair(prepared, body)
        except BaseException as error:
            if isinstance(error, ProviderError):
                opened.sent.failure = error
            opened.close()
            raise
        return opened

    # One request

    def _prepare(self, body: Body, after: Shape, *, stream: bool) -> Prepared:
        prepared = self._backend.adapter.prepare(body, self._operation, stream, self._call.unsupported, after)
        self._tell(prepared.adjustments)
        return prepared

    def _tell(self, adjustments: tuple[Adjustment, ...]) -> None:
        if adjustments:
            self._attempt.adjustments = tuple(dict.fromkeys((*self._attempt.adjustments, *adjustments)))

    def _rescue(self, body: Body, after: Shape, failure: ProviderError, *, stream: bool) -> tuple[Rescue, Shape] | None:
        """What may still answer *body*; not twice in a row, but for what a server takes exception to."""
        before = self._rescuing.get(after)
        # Servers name one thing that they do not take after another.
        goes_on = isinstance(before, LearnedRefusals | LearnedFeatures) and len(self._rescuing) < _MOST_RESCUES
        if before is not None and not goes_on:
            return None
        found = find_rescue(self._backend.adapter, self._call, body, failure, self._operation, stream=stream)
        if found is not None:
            self._rescuing[found[1]] = found[0]
            self._tell((Adjustment(found[1].param, found[1].action),))
        return found

    async def _send(self, body: Body, prepared: Prepared) -> OpenedCall:
        await self._places.take()
        sent = self.tally.begin(body)
        try:
            self._clock.call_begins(self._services.clock(), self._first_event_seconds)
            response = await self._backend.upstream.send(self._head, prepared.body, self._hop, sent)
            sent.status = response.status
            if self._attempt.status in (None, 200):
                self._attempt.status = response.status
            seen = self._backend.limits
            if seen is not None:
                seen.note(response.headers, self._services.clock())
            if response.status != 200:
                try:
                    told = await read_refusal(response)
                finally:
                    response.close()
                raise self._backend.adapter.refusal(response.status, response.headers, told)
        except BaseException as error:
            if isinstance(error, ProviderError):
                sent.failure = error
            self._places.give_back()
            raise
        finally:
            self._attempt.sent = self._attempt.sent or sent.sent
        return OpenedCall(response, sent, self._places)

    def _repair(self, prepared: Prepared, body: Body) -> StreamRepair:
        return self._backend.adapter.repair.stream(self._operation, prepared.needs, body)


def find_rescue(
    adapter: Adapter, call: Call, body: Body, failure: ProviderError, operation: Operation, *, stream: bool
) -> tuple[Rescue, Shape] | None:
    """What may still answer *body*, which has ended in *failure*; None nearly always."""
    for rescue in adapter.rescues:
        shape = rescue.rescued(Draft(body.copy(), operation, stream, call.unsupported), failure)
        if shape is not None:
            return rescue, shape
    return None


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
