"""A client's connection, apart from what is read on it: how it begins and ends, and whose turn it is to answer."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from gateway.data_plane.exchange import Plane
from gateway.data_plane.limits import WireLimits
from gateway.data_plane.uvicorn_exchange import UvicornExchange
from gateway.deadlines import NEVER, Deadlines, Watch, nothing
from gateway.gathered import GatheredTransport, Outbox


class UvicornConnection(HttpToolsProtocol):
    """One connection, on which exchanges and uvicorn's cycles share one pipeline and are answered in order.

    It knows when its client has left, is too slow to take an answer, or has to be listened to a little longer. Reading
    is the business of `DataPlaneProtocol`.
    """

    transport: GatheredTransport
    """The one that `connection_made` has put around the loop's own."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        plane: Plane,
        limits: WireLimits,
        deadlines: Deadlines,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.plane = plane
        self.peer = ""
        self._limits = limits
        self._deadlines = deadlines
        self._input_watch = Watch(NEVER, self._input_expired)
        self._output_watch = Watch(NEVER, self._output_expired)
        self._unsent_bytes = 0

        self._in_body: UvicornExchange | None = None
        """The exchange whose body is being read."""
        self._active: Any = None
        """The exchange or cycle being answered; `cycle` is the one that came last."""
        self._deaf = False
        """Nothing more is read from this connection: its last request is there, or it was refused."""
        self._lingering = False
        self._lingered_bytes = 0

    def _watch_input(self) -> None:
        """Set the time until which the client has to send something more."""
        raise NotImplementedError

    def _input_expired(self) -> None:
        """That time is over."""
        raise NotImplementedError

    # Beginning and end

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        super().connection_made(GatheredTransport(transport, Outbox.of(self.loop)))
        transport.set_write_buffer_limits(high=self._limits.buffer_bytes)
        self.peer = self.client[0] if self.client else ""
        self._input_watch.deadline = self.loop.time() + self._limits.header_seconds
        self._deadlines.add(self._input_watch)

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()
        self._deadlines.discard(self._input_watch)
        self._deadlines.discard(self._output_watch)
        super().connection_lost(exc)
        # They lead back here: without them there is no circle, and nothing waits for the garbage collector.
        self._input_watch.on_expire = self._output_watch.on_expire = nothing
        self.cycle = None  # type: ignore[assignment]  # uvicorn's own value before the first request

    def eof_received(self) -> None:
        # A client that has shut its sending side counts as gone. The transport closes once it has sent what waits.
        self._leave()
        if self.transport.get_write_buffer_size():
            self._watch_output()

    def _leave(self) -> None:
        self._deaf = True
        waiting = [cycle for cycle, _ in self.pipeline]
        self.pipeline.clear()
        for cycle in (self._active, *waiting):
            if isinstance(cycle, UvicornExchange):
                cycle.leave()
            elif cycle is not None and not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
        self._in_body = self._active = None

    def shutdown(self) -> None:
        """Finish what has begun, then close."""
        if self._lingering:
            self.transport.close()
        else:
            super().shutdown()

    def close(self) -> None:
        """Close once everything written has been sent."""
        active = self._active
        if isinstance(active, UvicornExchange) and active.refusal is not None:
            self._linger()
        else:
            self.transport.close()

    # A client that takes its answers slowly

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_output()
        if isinstance(self._active, UvicornExchange):
            self._active.flow(True)

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.transport.is_closing():
            self._deadlines.discard(self._output_watch)
        if isinstance(self._active, UvicornExchange):
            self._active.flow(False)

    def _watch_output(self) -> None:
        self._unsent_bytes = self.transport.get_write_buffer_size()
        self._output_watch.deadline = self.loop.time() + self._limits.write_stall_seconds
        self._deadlines.add(self._output_watch)

    def _output_expired(self) -> None:
        unsent = self.transport.get_write_buffer_size()
        if unsent < self._unsent_bytes:
            self._watch_output()
        elif unsent:
            self.transport.abort()

    # A client that is still sending when it has been refused

    def _linger(self) -> None:
        """Read on for a while and throw it away: closing at once would reset the connection and what was written."""
        self._lingering = True
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.flow.resume_reading()
        self._input_watch.deadline = self.loop.time() + self._limits.linger_seconds

    def _discard(self, data: bytes) -> None:
        self._lingered_bytes += len(data)
        if self._lingering and self._lingered_bytes > self._limits.linger_bytes:
            self.transport.close()

    # The order of answers

    def _enqueue(self, exchange: UvicornExchange) -> None:
        previous = self.cycle
        self.cycle = exchange  # type: ignore[assignment]  # it stands in for uvicorn's cycle
        if previous is None or previous.response_complete:
            self._active = exchange
        else:
            self.pipeline.appendleft((exchange, None))  # type: ignore[arg-type]  # an exchange needs no application

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._active = cycle
        if not isinstance(cycle, UvicornExchange):
            super()._start_asgi_task(cycle, app)
        elif cycle.complete or cycle.refusal is not None:
            cycle.begin()

    def on_response_complete(self) -> None:
        self.server_state.total_requests += 1
        if self.transport.is_closing() or self._lingering:
            if self.transport.get_write_buffer_size():
                self._watch_output()
            return
        if self.flow.read_paused:
            self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        self._watch_input()
