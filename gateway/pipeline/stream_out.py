"""The client's side of a stream: its head waits for the first content, silence is filled with comments."""

from __future__ import annotations

from collections.abc import Callable

from gateway.data_plane.errors import error_body
from gateway.data_plane.exchange import Exchange
from gateway.deadlines import NEVER, Deadlines, Watch, nothing
from gateway.errors import GatewayError

KEEP_ALIVE = b": keep-alive\n\n"
DONE = b"data: [DONE]\n\n"


class StreamOut:
    """One streamed answer, over all attempts to give it.

    The status stays unspent until `open` is called or *silence_seconds* have passed without a byte (decision 18).
    *head* renders the headers at that moment.
    """

    __slots__ = ("_deadlines", "_head", "_now", "_silence_seconds", "_watch", "exchange", "opened", "written_at")

    def __init__(
        self,
        exchange: Exchange,
        deadlines: Deadlines,
        now: Callable[[], float],
        silence_seconds: float,
        head: Callable[[], bytes],
    ) -> None:
        self.exchange = exchange
        self._deadlines = deadlines
        self._now = now
        self._silence_seconds = silence_seconds
        self._head = head
        self.opened = False
        self.written_at = now()
        """When the client was last sent anything. Whoever writes to the open exchange itself has to set it."""
        self._watch = Watch(self.written_at + silence_seconds, self._break_silence)
        deadlines.add(self._watch)

    def write(self, data: bytes, now: float) -> None:
        """Send events, the head before the first of them."""
        if not self.opened:
            self._open()
        self.exchange.write(data)
        self.written_at = now

    def end(self) -> None:
        """The stream is complete; its last event has been written."""
        self.close()
        self.exchange.end()

    def fail(
        self, error: GatewayError, request_id: str, provider: str | None, upstream_status: int | None = None
    ) -> None:
        """Tell of a failure after the status was spent: one error event, no ``[DONE]`` (decision 19)."""
        self.close()
        self.exchange.write(b"data: " + error_body(error, request_id, provider, upstream_status) + b"\n\n")
        self.exchange.end()

    def close(self) -> None:
        """Stop filling silence; may be called again."""
        self._watch.deadline = NEVER
        self._watch.on_expire = nothing
        self._deadlines.discard(self._watch)

    def _open(self) -> None:
        self.opened = True
        self.exchange.start(200, self._head())

    def _break_silence(self) -> None:
        now = self._now()
        if self.written_at + self._silence_seconds <= now:  # else something was written since the watch was set
            if not self.exchange.paused:
                if not self.opened:
                    self._open()
                self.exchange.write(KEEP_ALIVE)
            self.written_at = now
        self._watch.deadline = self.written_at + self._silence_seconds
