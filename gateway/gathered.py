"""Writes of one turn of the event loop, gathered until its end and sent one after the other.

A write takes the kernel through its whole network stack, and wakes whoever waits at the other end. Between two of them
the interpreter takes the processor's caches for itself; side by side they find what they need where the last one left
it, and the other end is awake already.
"""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import Iterable
from typing import Any, Final

_MOST_WAITING: Final = 32
"""So many connections are written to at once: the first of them should not wait for a long turn to end."""

_LARGE_BYTES: Final = 32 * 1024
"""More than this does not wait, in one piece or in many: whoever writes so much has to hear when the client is slow."""

_log = logging.getLogger(__name__)
_outboxes: Final[weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Outbox]] = weakref.WeakKeyDictionary()


class Outbox:
    """The transports of one loop that have something to write."""

    __slots__ = ("__weakref__", "_loop", "waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = weakref.ref(loop)  # it is what `_outboxes` forgets this by
        self.waiting: list[GatheredTransport] = []

    @classmethod
    def of(cls, loop: asyncio.AbstractEventLoop) -> Outbox:
        """The one outbox of *loop*."""
        found = _outboxes.get(loop)
        if found is None:
            found = _outboxes[loop] = cls(loop)
        return found

    def soon(self) -> None:
        """Flush at the end of this turn, or now, if as many wait as should."""
        if len(self.waiting) >= _MOST_WAITING:
            self.flush()
            return
        loop = self._loop()
        assert loop is not None
        loop.call_soon(self.flush)

    def flush(self) -> None:
        """Write all that waits."""
        waiting, self.waiting = self.waiting, []
        _send(waiting)


class GatheredTransport(asyncio.Transport):
    """A transport like *transport*, whose writes wait for the end of the turn.

    Closing it sends them first; aborting it loses them, as it does what the transport itself has not sent. What is
    large does not wait.
    """

    __slots__ = ("_ended", "_outbox", "transport", "unsent")

    def __init__(self, transport: asyncio.Transport, outbox: Outbox) -> None:
        self.transport = transport
        """The one that the bytes go to. Whoever asks it something knows that none are waiting, or need not know."""
        self.unsent: bytes = b""
        """What waits."""
        self._outbox = outbox
        self._ended = False

    def write(self, data: Any) -> None:
        if self._ended:
            raise RuntimeError("Cannot call write() after write_eof()")  # as the transport does
        before = self.unsent
        if before:
            self.unsent = data = b"".join((before, data))
        else:
            self.unsent = data
            waiting = self._outbox.waiting
            waiting.append(self)
            if not 1 < len(waiting) < _MOST_WAITING:
                self._outbox.soon()
        if len(data) > _LARGE_BYTES:
            self.flush()

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        self.flush()
        self.transport.writelines(list_of_data)

    def flush(self) -> None:
        """Write what waits now. It may be called for again at the end of the turn, and finds nothing then."""
        if self.unsent:
            _send((self,))

    def write_eof(self) -> None:
        self.flush()
        self._ended = True
        self.transport.write_eof()

    def close(self) -> None:
        self.flush()
        self.transport.close()

    def abort(self) -> None:
        self.unsent = b""
        self.transport.abort()

    def get_write_buffer_size(self) -> int:
        self.flush()
        return self.transport.get_write_buffer_size()

    def can_write_eof(self) -> bool:
        return self.transport.can_write_eof()

    def is_closing(self) -> bool:
        return self.transport.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self.transport.get_extra_info(name, default)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self.transport.set_write_buffer_limits(high, low)

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self.transport.get_write_buffer_limits()

    def pause_reading(self) -> None:
        self.transport.pause_reading()

    def resume_reading(self) -> None:
        self.transport.resume_reading()

    def is_reading(self) -> bool:
        return self.transport.is_reading()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.transport.set_protocol(protocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self.transport.get_protocol()


def _send(waiting: Iterable[GatheredTransport]) -> None:
    for gathered in waiting:
        data = gathered.unsent
        if not data:
            continue
        gathered.unsent = b""
        transport = gathered.transport
        try:
            transport.write(data)
        except Exception as error:  # noqa: BLE001 - the others of this turn must not go without their bytes
            if not transport.is_closing():  # else it was lost meanwhile, and uvloop raises for that
                _log.error("writing to a connection failed", exc_info=error)
                transport.abort()
