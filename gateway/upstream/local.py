"""The way to a local engine: waits until it is ready and for one of its slots, then sends like to any other server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextvars import ContextVar

from adapters.errors import ProviderError
from adapters.types import FailureKind
from gateway.upstream.base import BodySink, Origin, RequestHead, Sending, Upstream, UpstreamResponse
from gateway.upstream.counted import COUNTING, StreamCounts, asking_for_counts
from gateway.upstream.fair_queue import FairQueue, QueueFullError
from gateway.upstream.fold import as_stream, fold
from gateway.upstream.held import HeldResponse
from local_engine.errors import EngineDownError, NoRoomError
from local_engine.state import DOWN, Engine, explain, outline

fair_key: ContextVar[str] = ContextVar("fair_key", default="")
"""Whose turn a request takes in the queue; usually the id of the caller's key."""

# A large model takes a while to load, and another one may have to be unloaded before; the clocks of the request itself
# end a wait sooner where somebody else could answer.
_READY_TIMEOUT_SECONDS = 120.0
_EVENT_STREAM = "text/event-stream"
# A stream says what a plain answer says in about 200 bytes a token.
_MAX_FOLDED_BYTES = 256 << 20


def local_origin(engine: Engine) -> Origin:
    """Where to connect to; known from the engine's start on, and the same for its whole life.

    The engine drops kept-alive connections without notice, so each request gets one of its own.
    """
    address = engine.address
    host = "local" if address.socket_path is not None else "127.0.0.1"
    return Origin(host=host, port=address.port or 80, unix_path=address.socket_path, name=engine.name, keep_alive=False)


class LocalUpstream:
    """Implements `Upstream` in front of *inner*. At most *queue_limit* requests wait for a slot of the engine.

    A slot is taken before the request is sent and given back when its answer is over, however it ends; from slot to
    end the model stays loaded, and one that was unloaded is loaded first. Closing an
    answer early closes its connection, at which the engine stops within a second. For that, plain requests go to the
    engine as streams too (`fold.py`), so that `send` returns when their answers are complete.
    """

    def __init__(self, engine: Engine, inner: Upstream, queue_limit: int) -> None:
        self._engine = engine
        self._inner = inner
        self._queue = FairQueue(engine.slots, queue_limit)

    @property
    def engine(self) -> Engine:
        return self._engine

    @property
    def queue_limit(self) -> int:
        """Requests that may wait; those that do already are not turned away when it is lowered."""
        return self._queue.limit

    @queue_limit.setter
    def queue_limit(self, limit: int) -> None:
        self._queue.limit = limit

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return self._queue.waiting

    @property
    def free_slots(self) -> int:
        return self._queue.free

    async def send(
        self, head: RequestHead, body: bytes, extra_headers: bytes = b"", sending: Sending | None = None
    ) -> UpstreamResponse:
        if self._engine.state in DOWN:
            self._engine.wake()  # it is worth another try, for which other models may have to make room
            raise _down(outline(self._engine), explain(self._engine))
        try:
            await self._queue.take(fair_key.get())
        except QueueFullError as error:
            message = f"the local engine {self._engine.name!r} is busy: {error}"
            raise ProviderError(FailureKind.NO_CAPACITY, message, sent=False) from error
        claimed = False
        try:
            await self._engine.claim(_READY_TIMEOUT_SECONDS)
            claimed = True
            for name, value in self._engine.address.headers:
                extra_headers += f"{name}: {value}\r\n".encode()
            streamed = as_stream(head.path, body)
            wire = asking_for_counts(head.path, body if streamed is None else streamed)
            counts = StreamCounts() if wire.startswith(COUNTING) else None
            if sending is not None:
                sending.counts = counts
            response = await self._inner.send(head, wire, extra_headers, sending)
            if streamed is not None and response.headers.get("content-type", "").startswith(_EVENT_STREAM):
                response, counts = await _whole(head.path, response, counts), None
        except BaseException as error:
            if claimed:
                self._engine.release()
            self._queue.give_back()
            if isinstance(error, NoRoomError):
                raise ProviderError(FailureKind.NO_CAPACITY, str(error), sent=False) from error
            if isinstance(error, EngineDownError):
                raise _down(outline(self._engine), str(error)) from error
            if isinstance(error, ProviderError) and error.kind is FailureKind.CONNECT:
                raise _down(f"the local engine {self._engine.name!r} does not listen", error.message) from error
            raise
        return _SlotResponse(response, self._give_back, counts)

    def _give_back(self) -> None:
        self._engine.release()
        self._queue.give_back()

    async def aclose(self) -> None:
        """Nothing to close: the connections are the inner client's."""


async def _whole(path: str, response: UpstreamResponse, counts: StreamCounts | None) -> UpstreamResponse:
    try:
        gathered = _Gathered(counts)
        response.stream(gathered)
        await gathered.over
        status, body = fold(path, b"".join(gathered.pieces))
    finally:
        response.close()
    return _FoldedResponse(status, body)


class _Gathered:
    """A sink that keeps what comes, until *over* is done."""

    __slots__ = ("_counts", "_left", "over", "pieces")

    def __init__(self, counts: StreamCounts | None) -> None:
        self.pieces: list[bytes] = []
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._counts = counts
        self._left = _MAX_FOLDED_BYTES

    def feed(self, data: bytes) -> None:
        self._left -= len(data)
        if self._left < 0:
            message = f"the upstream's answer is larger than {_MAX_FOLDED_BYTES} bytes"
            self.finish(ProviderError(FailureKind.TOO_LARGE, message))
            return
        self.pieces.append(data)
        if self._counts is not None:
            self._counts.feed(data)

    def finish(self, error: ProviderError | None) -> None:
        if self.over.done():
            return
        if error is None:
            self.over.set_result(None)
        else:
            self.over.set_exception(error)


class _FoldedResponse(HeldResponse):
    """A plain answer put together from a stream that is over."""

    __slots__ = ()

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(status, {"content-type": "application/json", "content-length": str(len(body))}, body)

    async def read(self, limit_bytes: int) -> bytes:
        if len(self._body) > limit_bytes:
            message = f"the upstream's answer is larger than {limit_bytes} bytes"
            raise ProviderError(FailureKind.TOO_LARGE, message)
        return self._body


class _SlotResponse:
    """An answer that occupies a slot until it is over; the sink between the inner client and the caller's sink."""

    __slots__ = ("_counts", "_free", "_inner", "_sink", "headers", "status")

    def __init__(self, inner: UpstreamResponse, free: Callable[[], None], counts: StreamCounts | None) -> None:
        self.status: int = inner.status
        self.headers: Mapping[str, str] = inner.headers
        self._inner = inner
        self._free: Callable[[], None] | None = free
        self._sink: BodySink | None = None
        self._counts = counts

    async def read(self, limit_bytes: int) -> bytes:
        try:
            return await self._inner.read(limit_bytes)
        finally:
            self._give_back()

    def stream(self, sink: BodySink) -> None:
        self._sink = sink
        self._inner.stream(self)

    def feed(self, data: bytes) -> None:
        assert self._sink is not None
        if self._counts is not None:
            self._counts.feed(data)
        self._sink.feed(data)

    def finish(self, error: ProviderError | None) -> None:
        self._give_back()
        assert self._sink is not None
        self._sink.finish(error)

    def pause(self) -> None:
        self._inner.pause()

    def resume(self) -> None:
        self._inner.resume()

    def close(self) -> None:
        self._inner.close()
        self._give_back()

    def _give_back(self) -> None:
        free, self._free = self._free, None
        if free is not None:
            free()


def _down(what: str, reason: str) -> ProviderError:
    # The reason may name files of the operator's machine, which are nothing for clients.
    message = f"{what}. Whoever runs the gateway finds the reason at /health/ready."
    return ProviderError(FailureKind.ENGINE_DOWN, message, sent=False, detail=reason)
