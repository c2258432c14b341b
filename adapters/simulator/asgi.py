"""Serves a simulator to any ASGI server; keeps its times and breaks its connections."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from adapters.simulator.engine import Simulator
from adapters.simulator.wire import Answer, Break, Request, Wait

Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]


class SimulatorApp:
    """An ASGI application."""

    def __init__(self, simulator: Simulator) -> None:
        self._simulator = simulator

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        body = await _read(receive)
        if body is None:
            return
        answer = self._simulator.handle(Request(scope["method"], scope["path"], headers, body))
        # A client that leaves is noticed while nothing is sent, too.
        leaving = asyncio.ensure_future(_disconnected(receive))
        try:
            await _play(answer, send, leaving)
        finally:
            leaving.cancel()


async def _read(receive: Receive) -> bytes | None:
    pieces: list[bytes] = []
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            return None
        pieces.append(event.get("body", b""))
        if not event.get("more_body"):
            return b"".join(pieces)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _play(answer: Answer, send: Send, leaving: asyncio.Future[None]) -> None:
    if await _left_within(leaving, answer.delay):
        return
    headers = [(name.encode(), value.encode("latin-1")) for name, value in answer.headers.items()]
    if answer.length is not None:
        headers.append((b"content-length", str(answer.length).encode()))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    for step in answer.steps:
        if isinstance(step, bytes):
            await send({"type": "http.response.body", "body": step, "more_body": True})
            if leaving.done():
                return
        elif isinstance(step, Wait):
            if await _left_within(leaving, step.seconds):
                return
        elif step is Break.HANG:
            await leaving
            return
        else:
            return  # without the end of the body, for which the server closes the connection
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _left_within(leaving: asyncio.Future[None], seconds: float) -> bool:
    """Let *seconds* pass; True as soon as the client has left."""
    if seconds <= 0:
        return False
    await asyncio.wait([leaving], timeout=None if math.isinf(seconds) else seconds)
    return leaving.done()
