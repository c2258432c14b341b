"""One request of an attempt that takes several: prepared, sent in its turn and its time, and accounted for."""

from __future__ import annotations

from typing import Final

import msgspec

from adapters.adapter import Adapter, Prepared
from adapters.draft import Draft
from adapters.errors import ProviderError
from adapters.learned import LearnedFeatures, LearnedRefusals
from adapters.shapes.base import Answer, Rescue, Shape
from adapters.types import Adjustment, Body, Operation
from gateway.pipeline.backend import Backend
from gateway.pipeline.call import Attempt, Call
from gateway.pipeline.clock import AttemptClock
from gateway.pipeline.opened import OpenedCall
from gateway.pipeline.places import Places
from gateway.pipeline.tally import Tally
from gateway.pipeline.told import Told
from gateway.pipeline.whole import MAX_ANSWER_BYTES, is_stream, read_as_stream, read_refusal, read_whole
from gateway.services import Services
from gateway.upstream.base import RequestHead

_MOST_RESCUES: Final = 4


class ChildCalls:
    """Sends the requests of one attempt, and remembers what was tried after their failures."""

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
        self._tally = attempt.tally = Tally()
        self._call, self._attempt, self._backend, self._head, self._clock = call, attempt, backend, head, clock
        self._first_event_seconds = first_event_seconds
        self._now = services.clock
        self._hop = services.hop_header_after(call.hops) if call.hops else services.hop_header
        self._places = Places(backend.concurrency)
        self._rescuing: dict[Shape, Rescue] = {}
        self.operation = call.operation
        """What the requests are of, which need not be what the client's is."""

    def prepare(self, body: Body, after: Shape, *, stream: bool) -> Prepared:
        """*body* for the provider, or for a shape behind *after*, which has made it."""
        prepared = self._backend.adapter.prepare(body, self.operation, stream, self._call.unsupported, after)
        self._tell(prepared.adjustments)
        return prepared

    def rescue(self, body: Body, after: Shape, failure: ProviderError, *, stream: bool) -> tuple[Rescue, Shape] | None:
        """What may still answer *body*; not twice in a row, but for what a server takes exception to."""
        before = self._rescuing.get(after)
        # Servers name one thing that they do not take after another.
        goes_on = isinstance(before, LearnedRefusals | LearnedFeatures) and len(self._rescuing) < _MOST_RESCUES
        if before is not None and not goes_on:
            return None
        found = find_rescue(self._backend.adapter, self._call, body, failure, self.operation, stream=stream)
        if found is not None:
            self._note(*found)
        return found

    def rescued(self, rescue: Rescue, shape: Shape, failure: ProviderError, body: Body) -> None:
        """Take over from the attempt's own request, *body*, which has ended in *failure*."""
        attempt = self._attempt
        refused = self._tally.begin(body)
        refused.sent, refused.status, refused.failure = attempt.sent, attempt.status, failure
        refused.usage = failure.used
        attempt.status = None
        self._clock.wait_again()
        self._note(rescue, shape)

    def _note(self, rescue: Rescue, shape: Shape) -> None:
        self._rescuing[shape] = rescue
        self._tell((Adjustment(shape.param, shape.action),))

    def _tell(self, adjustments: tuple[Adjustment, ...]) -> None:
        if adjustments:
            self._attempt.adjustments = tuple(dict.fromkeys((*self._attempt.adjustments, *adjustments)))

    def heard(self) -> None:
        """Content has come that the clock was not told of."""
        self._clock.content_came(self._now(), self._first_event_seconds)

    async def send(self, body: Body, prepared: Prepared) -> OpenedCall:
        """Send *body*, as it is *prepared*, when there is a place for it. A refusal is raised."""
        await self._places.take()
        sent = self._tally.begin(body)
        try:
            self._clock.call_begins(self._now(), self._first_event_seconds)
            response = await self._backend.upstream.send(self._head, prepared.body, self._hop, sent)
            sent.status = response.status
            if self._attempt.status in (None, 200):
                self._attempt.status = response.status
            seen = self._backend.limits
            if seen is not None:
                seen.note(response.headers, self._now())
            if response.status != 200:
                try:
                    told = await read_refusal(response)
                finally:
                    response.close()
                raise self._backend.adapter.refusal(response.status, response.headers, told)
        except BaseException as error:  # who is cancelled gives back a place as well
            if isinstance(error, ProviderError):
                sent.failure = error
            self._places.give_back()
            raise
        finally:
            self._attempt.sent = self._attempt.sent or sent.sent
        return OpenedCall(response, sent, self._places)

    async def whole(self, body: Body, prepared: Prepared) -> Answer:
        """The answer to *body*, read to its end."""
        opened = await self.send(body, prepared)
        try:
            raw = await opened.response.read(MAX_ANSWER_BYTES)
            read = read_whole(raw, opened.response, self._backend.adapter, self.operation, prepared.needs, body)
        except ProviderError as failure:
            opened.sent.failure, opened.sent.usage = failure, failure.used
            raise
        finally:
            opened.close()
        opened.sent.usage = read.usage
        opened.sent.text_bytes = read.text_bytes
        whole: Answer = msgspec.json.decode(read.body)
        return whole

    async def as_stream(self, opened: OpenedCall, body: Body, prepared: Prepared) -> OpenedCall:
        """*opened*, with its answer made a stream if it is none, and repaired. It is closed where that fails."""
        try:
            if not is_stream(opened.response):
                provider = self._attempt.target.provider
                events = await read_as_stream(opened.response, self.operation, provider)
                opened.response = Told.of_events(events)
            opened.repair = self._backend.adapter.repair.stream(self.operation, prepared.needs, body)
        except BaseException as error:  # who is cancelled leaves no request open either
            if isinstance(error, ProviderError):
                opened.sent.failure = error
            opened.close()
            raise
        return opened


def find_rescue(
    adapter: Adapter, call: Call, body: Body, failure: ProviderError, operation: Operation, *, stream: bool
) -> tuple[Rescue, Shape] | None:
    """What may still answer *body*, which has ended in *failure*; None nearly always."""
    for rescue in adapter.rules.rescues:
        shape = rescue.rescued(Draft(body.copy(), operation, stream, call.unsupported), failure)
        if shape is not None:
            return rescue, shape
    return None
