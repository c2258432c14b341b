"""Answers in place of a bridge that cannot run for now, so that nobody waits for it in vain."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket

_PATIENCE_SECONDS = 5.0
_MOST_HEAD_BYTES = 64 * 1024
_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+)", re.IGNORECASE)


async def somebody_waits(listener: socket.socket) -> None:
    """Return when there is a connection to accept; it is left for whoever will answer it."""
    loop = asyncio.get_running_loop()
    waiting = asyncio.Event()
    loop.add_reader(listener.fileno(), waiting.set)
    try:
        await waiting.wait()
    finally:
        loop.remove_reader(listener.fileno())


async def refuse_connections(listener: socket.socket, name: str, seconds: float) -> None:
    """For *seconds*, answer every request that comes to *listener* with a 503 that names the bridge."""
    answer = _answer(name)
    answering: set[asyncio.Task[None]] = set()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while True:
                # Waiting and accepting are two steps, so that running out of time cannot lose what was accepted.
                await somebody_waits(listener)
                with contextlib.suppress(BlockingIOError):
                    connection, _ = listener.accept()
                    connection.setblocking(False)
                    task = asyncio.create_task(_refuse(connection, answer))
                    answering.add(task)
                    task.add_done_callback(answering.discard)
    if answering:
        await asyncio.wait(answering)


async def _refuse(connection: socket.socket, answer: bytes) -> None:
    loop = asyncio.get_running_loop()
    with connection, contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(_PATIENCE_SECONDS):
            # Read to its end: closing on unread bytes could take the answer away from whoever sent them.
            head = b""
            while b"\r\n\r\n" not in head and len(head) < _MOST_HEAD_BYTES:
                piece = await loop.sock_recv(connection, 65536)
                if not piece:
                    return
                head += piece
            start, _, body = head.partition(b"\r\n\r\n")
            length = _LENGTH.search(start)
            missing = int(length[1]) - len(body) if length else 0
            while missing > 0 and (piece := await loop.sock_recv(connection, 65536)):
                missing -= len(piece)
            await loop.sock_sendall(connection, answer)


def _answer(name: str) -> bytes:
    message = f"the bridge {name!r} is not running. Whoever runs the gateway finds the reason in its log."
    error = {"message": message, "type": "server_error", "param": None, "code": "bridge_down"}
    body = json.dumps({"error": error}).encode()
    return (
        b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nconnection: close\r\n"
        b"content-length: %d\r\n\r\n%b" % (len(body), body)
    )
