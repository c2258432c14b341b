"""A server's protocol fed by hand, without a socket: what it ran, what it wrote, and whether it hung up."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from gateway.data_plane.exchange import Exchange, Handler
from gateway.data_plane.limits import WireLimits
from gateway.data_plane.uvicorn_protocol import DataPlaneProtocol
from gateway.deadlines import Deadlines
from gateway.gathered import Outbox

# A task that waits for more of a body is all that is left after so many turns of the loop.
_TURNS = 12


@dataclass(frozen=True, slots=True)
class Run:
    """A request that was answered: by the data plane, or by the application behind it."""

    method: str
    path: str
    """Without the query."""
    body: bytes


@dataclass(slots=True)
class Told:
    """What became of some bytes."""

    runs: list[Run]
    written: bytes
    ended: bool
    """The server hung up."""


class FakeTransport:
    """As much of a transport as the server uses; it takes everything at once."""

    def __init__(self) -> None:
        self.written = bytearray()
        self.ended = False
        self.late = b""
        """What was written after the end."""

    def write(self, data: bytes) -> None:
        if self.ended:
            self.late += data
        self.written += data

    def write_eof(self) -> None:
        self.ended = True

    close = abort = write_eof

    def is_closing(self) -> bool:
        return self.ended

    def can_write_eof(self) -> bool:
        return True

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def set_write_buffer_limits(self, high: int, low: int | None = None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        pass

    resume_reading = pause_reading


@dataclass(slots=True)
class RecordingPlane:
    """Answers everything (*hot*), or leaves everything to the application behind it, and notes what it was asked."""

    hot: bool
    draining: bool = False
    runs: list[Run] = field(default_factory=list)

    def match(self, method: bytes, path: str) -> Handler | None:
        # As with the real one, no HEAD, for its answers have bodies, and no whole URL.
        if not self.hot or method == b"HEAD" or not path.startswith("/"):
            return None
        return functools.partial(self._answer, method.decode(), path.partition("?")[0])

    async def _answer(self, method: str, path: str, exchange: Exchange) -> None:
        self.runs.append(Run(method, path, bytes(exchange.body)))
        exchange.respond(200, b"", b"ok")

    async def application(self, scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message["body"]
            more = message["more_body"]
        self.runs.append(Run(scope["method"], scope["path"], body))
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})


async def serve_bytes(reads: Iterable[bytes], *, hot: bool, limits: WireLimits | None = None) -> Told:
    """Feed a fresh connection with *reads*, one at a time, and let it answer what it can."""
    plane = RecordingPlane(hot)
    deadlines = Deadlines()
    config = uvicorn.Config(
        plane.application, http="httptools", ws="none", lifespan="off", log_config=None, interface="asgi3"
    )
    config.load()
    make = functools.partial(DataPlaneProtocol, plane=plane, limits=limits or WireLimits(), deadlines=deadlines)
    protocol = make(config=config, server_state=ServerState(), app_state={})
    transport = FakeTransport()
    protocol.connection_made(transport)  # type: ignore[arg-type]  # it stands in for one
    for read in reads:
        if read:
            protocol.data_received(read)
            await _settle(protocol)
    told = Told(plane.runs, bytes(transport.written), transport.ended)
    protocol.connection_lost(None)
    await _settle(protocol)
    deadlines.close()
    assert transport.late == b""
    return told


async def _settle(protocol: DataPlaneProtocol) -> None:
    """Let what can go on go on: each task here ends by itself, and none waits for anything but a body."""
    for _ in range(_TURNS):
        if not protocol.tasks:
            break
        await asyncio.sleep(0)
    Outbox.of(protocol.loop).flush()
