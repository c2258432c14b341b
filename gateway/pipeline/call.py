"""One request on its way through the pipeline, and the record of each attempt to answer it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from adapters.draft import Unsupported
from adapters.errors import ProviderError
from adapters.pricing import prompt_bytes
from adapters.target import Target
from adapters.types import Adjustment, Body, FailureKind, Operation
from gateway.storage.virtual_key import ANONYMOUS, VirtualKey

if TYPE_CHECKING:
    from adapters.adapter import Prepared
    from gateway.catalog import Model
    from gateway.data_plane.exchange import Exchange
    from gateway.data_plane.known_body import KnownBody
    from gateway.pipeline.holds import Hold
    from gateway.pipeline.relay import StreamRelay
    from gateway.pipeline.tally import Tally
    from gateway.upstream.base import Counts


def stopping() -> ProviderError:
    """The failure of an attempt that the gateway ends because it stops."""
    return ProviderError(FailureKind.SHUTTING_DOWN, "The gateway is stopping; send the request again.")


class Attempt(msgspec.Struct, eq=False):
    """One call to one target, with its outcome."""

    target: Target
    hold: Hold
    started: float
    """On the clock of `Services`, like all times here."""
    ended: float = 0.0
    first_content: float = 0.0
    """When the first content (or the whole answer) was there; 0 when none came."""
    status: int | None = None
    """The upstream's HTTP status, if it gave one."""
    failure: ProviderError | None = None
    sent: bool = False
    """Whether any byte of the request may have reached the upstream; set by the HTTP client."""
    counts: Counts | None = None
    """What the provider has counted so far, of those that tell while they answer; set by the HTTP client."""
    adjustments: tuple[Adjustment, ...] = ()
    text_bytes: int = 0
    """Text received so far: what a broken-off answer is charged by."""
    tally: Tally | None = None
    """The requests of an attempt that takes several; they are charged in place of what is noted here."""


class Call(msgspec.Struct, eq=False):
    """What a client asked for, and what has happened to it so far."""

    exchange: Exchange
    operation: Operation
    started: float
    """When the request was complete, on the clock of `Services`, like all times here."""
    started_wall: float
    request_id: str = ""
    key: VirtualKey = ANONYMOUS
    authenticated: bool = False
    body: Body = msgspec.field(default_factory=dict)
    known: KnownBody | None = None
    """What *body* differs from in nothing but its messages, where something does."""
    model: Model | None = None
    stream: bool = False
    wants_usage: bool = False
    """The client asked for the usage chunk of a stream."""
    encoding: str = ""
    """How the vectors of an embeddings request are to come: ``float`` or ``base64``; empty for other requests."""
    unsupported: Unsupported = Unsupported.AUTO
    """What is done about parameters a target lacks: the client's own word, else the model's."""
    prepared: dict[Target, Prepared] = msgspec.field(default_factory=dict)
    """What the targets would be sent, where that had to be known to choose among them."""
    output_limit: int | None = None
    choices: int = 1
    others: bool = False
    """Another target could be asked now, should the one that is being asked have nothing to say."""
    time_limit_seconds: float | None = None
    """The client's own limit, from ``x-gateway-timeout``."""
    hops: bytes = b""
    """The gateways this request has passed before, as the loop mark names them."""
    client_retries: bool = False
    """The client's SDK says that this is not its first try."""
    attempts: list[Attempt] = msgspec.field(default_factory=list)
    waited_seconds: float = 0.0
    """Spent between attempts, because an upstream was given time."""
    ended: float = 0.0
    status: int = 0
    error_code: str = ""
    task: asyncio.Task[None] | None = None
    relay: StreamRelay | None = None
    """The stream that is being passed on, while one is."""
    ending: bool = False
    """The gateway itself ends this call, because it is stopping."""

    @property
    def last_attempt(self) -> Attempt | None:
        return self.attempts[-1] if self.attempts else None

    def end(self) -> None:
        """Stop this call because the gateway stops."""
        self.ending = True
        if self.relay is not None:
            self.relay.stop(stopping())
        elif self.task is not None:
            self.task.cancel()

    def prompt_bytes(self) -> int:
        """Size of what the model has to read, for estimates."""
        return prompt_bytes(self.body)
