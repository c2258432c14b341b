"""A server on a raw socket that answers by script: any bytes, at any time, and every way to break off."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType


@dataclass(frozen=True, slots=True)
class Sleep:
    """Wait before the next step."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Until:
    """Wait until the test sets *event*: what has to come first has come then, however slow the machine."""

    event: asyncio.Event


@dataclass(frozen=True, slots=True)
class Close:
    """Close the connection properly (FIN)."""


@dataclass(frozen=True, slots=True)
class Reset:
    """Break the connection (RST): what the client has not read yet may be lost."""


@dataclass(frozen=True, slots=True)
class Hang:
    """Stay silent until the client closes the connection."""


@dataclass(frozen=True, slots=True)
class Flood:
    """Send *piece* again and again, until the client closes the connection or *total_bytes* are sent."""

    piece: bytes
    total_bytes: int


Step = bytes | Sleep | Until | Close | Reset | Hang | Flood
Script = Sequence[Step]


@dataclass(slots=True)
class RecordedRequest:
    """A request as it came. *body* grows while it is read if the script is told not to wait for it."""

    connection: int
    """Counts connections from 1."""
    number: int
    """Counts requests over all connections from 1."""
    method: str
    path: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes = b""
    raw_head: bytes = field(default=b"", repr=False)


def answer(body: bytes = b"{}", status: int = 200, content_type: str = "application/json", headers: str = "") -> bytes:
    """A whole, proper answer. *headers* are further lines, each with its line end."""
    return (
        f"HTTP/1.1 {status} X\r\ncontent-type: {content_type}\r\n{headers}content-length: {len(body)}\r\n\r\n".encode()
        + body
    )


def chunked_head(content_type: str = "text/event-stream", headers: str = "") -> bytes:
    """The head of an answer in chunks."""
    return f"HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\n{headers}transfer-encoding: chunked\r\n\r\n".encode()


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


LAST_CHUNK = b"0\r\n\r\n"
DEFAULT_ANSWER = answer()


class ScriptedServer:
    """Listens on 127.0.0.1, or on a unix socket, while the ``async with`` block runs.

    *script* is what follows each request: steps, or a function from the request to steps. With *on_connect* those
    steps are done as soon as a client connects, before anything is read. With *read_body* false the script runs as
    soon as the head is there. After a script without Close, Reset or Hang the next request of the connection is read.
    """

    def __init__(
        self,
        script: Script | Callable[[RecordedRequest], Script] = (DEFAULT_ANSWER,),
        *,
        on_connect: Script = (),
        read_body: bool = True,
        ssl_context: ssl.SSLContext | None = None,
        unix_path: str | None = None,
        host: str = "127.0.0.1",
    ) -> None:
        self._script = script
        self._on_connect = on_connect
        self._read_body = read_body
        self._ssl_context = ssl_context
        self._unix_path = unix_path
        self._host = host
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self.port = 0
        self.requests: list[RecordedRequest] = []
        self.connections = 0
        """How many connections there have been."""
        self.open_connections = 0
        self.sent_bytes = 0
        """What the scripts handed to the socket, floods included."""

    async def __aenter__(self) -> ScriptedServer:
        if self._unix_path is not None:
            self._server = await asyncio.start_unix_server(self._serve, self._unix_path, ssl=self._ssl_context)
        else:
            self._server = await asyncio.start_server(self._serve, self._host, 0, ssl=self._ssl_context, backlog=1024)
            self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def wait_until(self, condition: Callable[[ScriptedServer], bool], seconds: float = 5.0) -> None:
        """Return when *condition* holds; it is looked at after each request, and each begin and end of a connection."""
        async with asyncio.timeout(seconds):
            while not condition(self):
                self._changed.clear()
                await self._changed.wait()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        self.open_connections += 1
        self._changed.set()
        try:
            with contextlib.suppress(ConnectionError, ssl.SSLError, asyncio.IncompleteReadError):
                await self._converse(self.connections, reader, writer)
        except asyncio.CancelledError:
            pass  # the test is over
        finally:
            writer.transport.abort()
            self._tasks.discard(task)
            self.open_connections -= 1
            self._changed.set()

    async def _converse(self, connection: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not await self._play(self._on_connect, reader, writer):
            return
        while True:
            request = await self._read_head(connection, reader)
            length = int(request.headers.get("content-length", "0"))
            if self._read_body:
                request.body = await reader.readexactly(length)
            self.requests.append(request)
            self._changed.set()
            script = self._script(request) if callable(self._script) else self._script
            if not await self._play(script, reader, writer):
                return
            if not self._read_body:
                request.body = await reader.readexactly(length)

    async def _read_head(self, connection: int, reader: asyncio.StreamReader) -> RecordedRequest:
        raw = await reader.readuntil(b"\r\n\r\n")
        first, *lines = raw.decode("latin-1").rstrip("\r\n").split("\r\n")
        method, path, _ = first.split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        return RecordedRequest(connection, len(self.requests) + 1, method, path, headers, raw_head=raw)

    async def _play(self, script: Script, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Do the steps; false when the connection is over."""
        for step in script:
            match step:
                case bytes():
                    await self._send(step, writer)
                case Sleep(seconds):
                    await asyncio.sleep(seconds)
                case Until(event):
                    await event.wait()
                case Flood(piece, total_bytes):
                    for _ in range(total_bytes // len(piece)):
                        await self._send(piece, writer)
                case Hang():
                    while await reader.read(65536):
                        pass
                    return False
                case Close():
                    writer.close()
                    await writer.wait_closed()
                    return False
                case Reset():
                    self._reset(writer)
                    return False
        return True

    async def _send(self, data: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        self.sent_bytes += len(data)

    @staticmethod
    def _reset(writer: asyncio.StreamWriter) -> None:
        sock = writer.get_extra_info("socket")
        if sock.family != socket.AF_UNIX:
            # Lingering for no time at all turns close() into a reset.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
