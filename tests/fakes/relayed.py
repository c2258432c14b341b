"""Puts the bytes of an upstream's stream through the relay, without sockets, and keeps what the client would get."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from adapters.adapter import Adapter
from adapters.draft import AnswerNeeds
from adapters.registry import load_spec
from adapters.target import Target
from adapters.types import Body, Operation, Usage
from gateway.data_plane.exchange import ClientHead
from gateway.deadlines import Deadlines
from gateway.pipeline.call import Attempt, Call
from gateway.pipeline.clock import AttemptClock
from gateway.pipeline.holds import CountingLedger
from gateway.pipeline.relay import StreamRelay
from gateway.pipeline.stream_out import StreamOut
from gateway.upstream.base import BodySink


class Captured:
    """An exchange that remembers what it was told to send."""

    head = ClientHead("POST", "/v1/chat/completions", ())
    peer = ""
    body: bytes | bytearray = b""
    task: asyncio.Task[None] | None = None

    def __init__(self) -> None:
        self.started = self.paused = self.ended = False
        self.on_flow: Callable[[bool], None] | None = None
        self.sent = b""

    def respond(self, status: int, headers: bytes, body: bytes) -> None:
        raise AssertionError("a stream is never answered whole")

    def start(self, status: int, headers: bytes) -> None:
        assert not self.started
        self.started = True

    def write(self, data: bytes) -> None:
        assert self.started
        assert not self.ended
        assert data
        self.sent += data

    def end(self) -> None:
        assert not self.ended
        self.ended = True

    def abort(self) -> None:
        raise AssertionError("nobody breaks off here")


class Silent:
    """An upstream's answer that is fed by the test."""

    status = 200
    headers: Mapping[str, str] = {}

    async def read(self, limit_bytes: int) -> bytes:
        raise AssertionError("a stream is never read whole")

    def stream(self, sink: BodySink) -> None: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def close(self) -> None: ...


@cache
def adapter_of(provider: str) -> Adapter:
    """The adapter of a target of *provider*."""
    return Adapter(Target("p/up", "p", "up", load_spec(provider)))


class Outcome:
    """What came of one stream."""

    def __init__(
        self,
        pieces: Sequence[bytes],
        wants_usage: bool = False,
        *,
        provider: str = "openai_compatible",
        operation: Operation = Operation.CHAT,
        needs: AnswerNeeds | None = None,
        request: Body | None = None,
        alias: bytes | None = None,
    ) -> None:
        adapter = adapter_of(provider)
        deadlines = Deadlines()
        self.exchange = Captured()
        self.settled: list[Usage | None] = []
        call = Call(self.exchange, operation, time.monotonic(), 0.0, wants_usage=wants_usage)
        attempt = Attempt(adapter.target, CountingLedger().hold("key", adapter.target), time.monotonic())
        out = StreamOut(self.exchange, deadlines, time.monotonic, 15.0, lambda: b"")
        clock = AttemptClock(deadlines, time.monotonic, None, time.monotonic() + 30, time.monotonic() + 600)
        relay = StreamRelay(
            call,
            attempt,
            out,
            clock,
            Silent(),
            now=time.monotonic,
            stall_seconds=30.0,
            error_of=adapter.error,
            settle=self.settled.append,
            repair=adapter.repair.stream(operation, needs, request or {}),
            model=alias,
            progress=adapter.progress,
        )
        for piece in pieces:
            relay.feed(piece)
        relay.finish(None)
        assert relay.done.done()
        clock.stop()
        out.close()
        deadlines.close()
        self.failure = relay.failure.kind if relay.failure is not None else None
        self.committed = relay.committed
        self.usage = relay.usage
        self.text_bytes = attempt.text_bytes
        self.sent = self.exchange.sent


def cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    """*data* cut at *places*, as far as they are in it."""
    edges = [0, *sorted({place % (len(data) + 1) for place in places} - {0}), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges) if start < end]
