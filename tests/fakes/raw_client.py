"""A client that says exactly the bytes it is told to, and reads answers without forgiving anything."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from dataclasses import dataclass, field
from typing import Any

import msgspec


@dataclass(slots=True)
class Answer:
    """One HTTP answer."""

    status: int
    headers: dict[str, str]
    body: bytes
    chunks: list[bytes] = field(default_factory=list)
    complete: bool = True
    """False when the connection ended before the body did."""

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)

    @property
    def error(self) -> dict[str, Any]:
        error: dict[str, Any] = self.json["error"]
        return error


class RawClient:
    """One TCP connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def connect(cls, port: int, *, receive_buffer: int | None = None, limit: int = 2**20) -> RawClient:
        """Connect; a small *receive_buffer* makes a client that soon takes no more."""
        sock = socket.socket()
        if receive_buffer is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        sock.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
        except OSError:
            sock.close()
            raise
        return cls(*await asyncio.open_connection(sock=sock, limit=limit))

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def send_for_ever(self, data: bytes) -> None:
        """Send until the server has had enough of it."""
        while True:
            await self.send(data)
            await asyncio.sleep(0.005)

    async def answer(self, timeout: float = 5.0, *, head_request: bool = False) -> Answer:
        """The next answer, final or informational."""
        async with asyncio.timeout(timeout):
            status, headers = await self.head()
            if head_request or status < 200 or status in (204, 304):
                return Answer(status, headers, b"")
            if headers.get("transfer-encoding") == "chunked":
                return await self._chunked(status, headers)
            if "content-length" in headers:
                try:
                    body = await self.reader.readexactly(int(headers["content-length"]))
                except asyncio.IncompleteReadError as cut:
                    return Answer(status, headers, cut.partial, complete=False)
                return Answer(status, headers, body)
            try:
                return Answer(status, headers, await self.reader.read())
            except ConnectionResetError:
                return Answer(status, headers, b"", complete=False)

    async def head(self) -> tuple[int, dict[str, str]]:
        lines = (await self.reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
        assert lines[0].startswith(b"HTTP/1.1 "), lines[0]
        headers: dict[str, str] = {}
        for line in lines[1:-2]:
            name, _, value = line.decode("latin-1").partition(": ")
            assert name.lower() not in headers, f"{name} stands twice"
            headers[name.lower()] = value
        return int(lines[0].split()[1]), headers

    async def chunk(self) -> bytes:
        """The next chunk of a body; empty at its end."""
        size = int((await self.reader.readuntil(b"\r\n"))[:-2], 16)
        return (await self.reader.readexactly(size + 2))[:-2]

    async def rest(self, timeout: float = 30.0) -> bytes:
        """What is left of a chunked body."""
        body = b""
        async with asyncio.timeout(timeout):
            while chunk := await self.chunk():
                body += chunk
        return body

    async def _chunked(self, status: int, headers: dict[str, str]) -> Answer:
        chunks: list[bytes] = []
        try:
            while chunk := await self.chunk():
                chunks.append(chunk)
        except (asyncio.IncompleteReadError, ConnectionResetError):
            return Answer(status, headers, b"".join(chunks), chunks, complete=False)
        return Answer(status, headers, b"".join(chunks), chunks)

    async def closed(self, timeout: float = 5.0) -> bool:
        """True once the server has ended the connection, with nothing more said."""
        try:
            async with asyncio.timeout(timeout):
                return await self.reader.read(1) == b""
        except ConnectionResetError:
            return True

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(ConnectionError):
            await self.writer.wait_closed()

    def reset(self) -> None:
        """Leave without goodbye."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


def post(path: str, body: bytes, *headers: str) -> bytes:
    """A well-formed POST with its length."""
    lines = [f"POST {path} HTTP/1.1", "Host: gateway", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body
