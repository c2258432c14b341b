"""One of the requests of an attempt that takes several, from the head of its answer to its end."""

from __future__ import annotations

from typing import Protocol

from adapters.repair.stream import StreamRepair
from gateway.pipeline.places import Places
from gateway.pipeline.tally import SentCall
from gateway.upstream.base import UpstreamResponse


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


class OpenedCall:
    """A request of which the head of the answer is here, with its place at the provider."""

    __slots__ = ("_places", "repair", "response", "sent")

    def __init__(self, response: UpstreamResponse, sent: SentCall, places: Places) -> None:
        self.response = response
        self.sent = sent
        self.repair: StreamRepair | None = None
        self._places: Places | None = places

    def close(self) -> None:
        self.response.close()
        places, self._places = self._places, None
        if places is not None:
            places.give_back()


class NestedCalls:
    """What a further shape made of a request: its calls are accounted for by themselves."""

    __slots__ = ("repair", "response", "sent")

    def __init__(self, response: UpstreamResponse) -> None:
        self.response = response
        self.sent: SentCall | None = None
        self.repair: StreamRepair | None = None

    def close(self) -> None:
        self.response.close()
