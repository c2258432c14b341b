"""The message being read on a connection: its bounds in bytes, in time and in number, and its refusal."""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from gateway.data_plane.exchange import ClientHead
from gateway.data_plane.request_head import headers_too_large
from gateway.data_plane.uvicorn_connection import UvicornConnection
from gateway.data_plane.uvicorn_exchange import UvicornExchange
from gateway.deadlines import NEVER
from gateway.errors import GatewayError, RequestTimeoutError

AHEAD_REQUESTS: Final = 8
"""Requests a client may send ahead of the answers."""
_AHEAD_BYTES: Final = 64 * 1024
"""What we read of the body of such a one."""


class UvicornInput(UvicornConnection):
    """What a client may send: how much of it, in what time, and how far ahead of the answers.

    Whatever is wrong on the wire gets a JSON error, in its turn, and ends the connection.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        # The message being read: its head, then the body of an exchange or of one of uvicorn's cycles.
        self._in_head = False
        self._in_cold_body = False
        self._head: list[tuple[bytes, bytes]] = []
        self._head_deadline = NEVER
        self._feed_bytes = 0
        """What the last read has brought."""
        self._fed_bytes = 0
        """What was read since the last message ended."""
        self._body_bytes = 0
        self._body_mark = 0
        """How much of the body has to be there for its time to be extended."""
        self._padding_bytes = self._padding_mark = 0
        """What came since `_body_bytes` was at the mark and was no body: extensions of chunks, and trailers."""

    def _refuse(self, error: GatewayError) -> None:
        """Answer the request being read with *error* when its turn comes, and hear nothing more."""
        if self._deaf:
            return
        self._deaf = True
        exchange, self._in_body = self._in_body, None
        if exchange is not None:
            exchange.refusal = error
            if self._active is exchange:
                exchange.begin()
            return
        if self._in_cold_body and not self._withdraw_cold():
            return
        head = ClientHead(self.parser.get_method().decode("ascii"), "", self._head)
        exchange = UvicornExchange(self, self.transport, None, head, self.peer)
        exchange.refusal = error
        self._enqueue(exchange)
        if self._active is exchange:
            exchange.begin()

    def _withdraw_cold(self) -> bool:
        """Take back a request whose body broke off from uvicorn; False if it has begun to answer."""
        cycle = self.cycle
        self._in_cold_body = False
        if cycle.response_started:
            cycle.keep_alive = False
            if cycle.response_complete:
                self.transport.close()
            return False
        cycle.disconnected = True
        cycle.response_complete = True
        cycle.waiting_for_100_continue = False  # or it would ask for the body, behind our answer
        cycle.message_event.set()
        self.pipeline = deque(entry for entry in self.pipeline if entry[0] is not cycle)
        # The exchange that takes its place must not overtake the one that is still being answered.
        if self._active is not cycle:
            self.cycle = self.pipeline[0][0] if self.pipeline else self._active
        return True

    # Time

    def _watch_input(self) -> None:
        watch, limits = self._input_watch, self._limits
        if self._deaf:
            if not self._lingering:
                watch.deadline = NEVER
        elif self._in_head:
            if self._head_deadline == NEVER:
                self._head_deadline = self.loop.time() + limits.header_seconds
            if self._fed_bytes > limits.max_header_bytes or len(self._head) > limits.max_headers:
                self._refuse(headers_too_large(limits))
                return
            watch.deadline = self._head_deadline
        elif self._in_body is not None or self._in_cold_body:
            self._watch_body()
        elif self.cycle is None or self.cycle.response_complete:
            watch.deadline = self.loop.time() + limits.keep_alive_seconds
        else:
            watch.deadline = NEVER

    def _watch_body(self) -> None:
        watch, limits, exchange = self._input_watch, self._limits, self._in_body
        if exchange is not None:
            if exchange is not self._active:
                if len(self.pipeline) >= AHEAD_REQUESTS or len(exchange.body) > _AHEAD_BYTES:
                    self.flow.pause_reading()
            elif not self._body_bytes:
                exchange.send_continue()
        if self._body_bytes != self._padding_mark:
            self._padding_mark, self._padding_bytes = self._body_bytes, 0
        else:
            self._padding_bytes += min(self._feed_bytes, self._fed_bytes)
            if self._padding_bytes > 2 * limits.max_header_bytes:  # the first of it can have been the head
                self._refuse(headers_too_large(limits))
                return
        if self.flow.read_paused:
            watch.deadline = NEVER
        elif watch.deadline == NEVER or self._body_bytes >= self._body_mark:
            watch.deadline = self.loop.time() + limits.body_seconds
            self._body_mark = self._body_bytes + limits.progress_bytes

    def _input_expired(self) -> None:
        if self._lingering:
            self.transport.close()
        elif self._in_head or self._in_body is not None or self._in_cold_body:
            part = "head" if self._in_head else "body"
            self._refuse(RequestTimeoutError(f"The {part} of the request took too long to arrive. Send it faster."))
        else:
            self.transport.close()
