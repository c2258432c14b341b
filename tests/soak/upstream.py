"""An upstream in a process of its own: answers as each request's ``user`` says, and notes when it is left.

``user`` is ``<number>/<manner>``. The manners: ``words`` (an event now and then), ``thick`` (many large events at
once), ``silent`` (nothing), ``halting`` (the beginning of an answer), ``refuse`` (503) and ``break`` (a reset in the
middle). ``GET /figures`` tells what was seen, after closing all idle connections.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import time
from typing import Any

from tests.fakes.openai_answers import DONE, ROLE, STOP, refusal, usage_chunk, whole, words
from tests.fakes.scripted_server import LAST_CHUNK, chunk, chunked_head

LEAST_WORDS, MOST_WORDS = 8, 30
WORD_SECONDS = 0.5
THICK_EVENTS, THICK_BYTES = 48, 16_384
LONGEST_SILENCE_SECONDS = 30.0
_CALL = json.dumps({"tool_calls": [{"name": "look", "arguments": {"place": "here"}}]})


def words_of(number: int) -> int:
    """How many words the answer to request *number* has."""
    return LEAST_WORDS + number * 7919 % (MOST_WORDS - LEAST_WORDS)


def text_of_words(number: int) -> list[str]:
    return [f"word{position} " for position in range(words_of(number))]


class Seen:
    """What the upstream noted, by the numbers of the requests; times are those of `time.monotonic`."""

    def __init__(self) -> None:
        self.begun: dict[str, list[float]] = {}
        self.left: dict[str, list[float]] = {}
        self.connections: set[Connection] = set()


class Connection(asyncio.Protocol):
    """One connection of the gateway's; requests on it come one at a time."""

    def __init__(self, seen: Seen) -> None:
        self._seen = seen
        self._buffer = b""
        self._task: asyncio.Task[None] | None = None
        self._number = ""
        self._room = asyncio.Event()
        self._room.set()

    @property
    def busy(self) -> bool:
        return self._task is not None and not self._task.done()

    def connection_made(self, transport: Any) -> None:
        self.transport: asyncio.Transport = transport
        self._seen.connections.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._seen.connections.discard(self)
        if self._task is not None and not self._task.done():
            self._seen.left.setdefault(self._number, []).append(time.monotonic())
            self._task.cancel()

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, end, rest = self._buffer.partition(b"\r\n\r\n")
        if not end:
            return
        if head.startswith(b"GET /figures"):
            self._buffer = b""
            self._tell_figures()
            return
        lines = (line.partition(b":") for line in head.lower().split(b"\r\n")[1:])
        length = next(int(value) for name, _, value in lines if name == b"content-length")
        if len(rest) >= length:
            self._buffer = rest[length:]
            self._task = asyncio.get_running_loop().create_task(self._answer(json.loads(rest[:length])))

    def _tell_figures(self) -> None:
        others = self._seen.connections - {self}
        busy = [connection for connection in others if connection.busy]
        for connection in others:
            if not connection.busy:
                connection.transport.close()
        told = {"begun": self._seen.begun, "left": self._seen.left, "busy": len(busy), "open": len(others)}
        body = json.dumps(told).encode()
        self.transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))

    async def _answer(self, body: dict[str, Any]) -> None:
        self._number, _, manner = body["user"].partition("/")
        self._seen.begun.setdefault(self._number, []).append(time.monotonic())
        match manner:
            case "refuse":
                self.transport.write(refusal(503))
            case "silent":
                await asyncio.sleep(LONGEST_SILENCE_SECONDS)
            case "halting":
                beginning = chunked_head() + chunk(ROLE + words("word0 ")[0]) if body.get("stream") else whole()[:-9]
                self.transport.write(beginning)
                await asyncio.sleep(LONGEST_SILENCE_SECONDS)
            case _ if not body.get("stream"):
                text = _CALL if "response_format" in body else "".join(text_of_words(int(self._number)))
                await asyncio.sleep(WORD_SECONDS)
                self.transport.write(whole(text))
            case "thick":
                await self._stream(["x" * THICK_BYTES] * THICK_EVENTS, 0.0)
            case "break":
                await self._stream(["word0 ", "word1 "], 0.1, end=False)
                sock = self.transport.get_extra_info("socket")
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.transport.abort()
            case _:
                texts = [_CALL] if "response_format" in body else text_of_words(int(self._number))
                await self._stream(texts, WORD_SECONDS)

    async def _stream(self, texts: list[str], pause_seconds: float, *, end: bool = True) -> None:
        self.transport.write(chunked_head() + chunk(ROLE))
        for event in words(*texts):
            await self._room.wait()
            self.transport.write(chunk(event))
            if pause_seconds:
                await asyncio.sleep(pause_seconds)
        if end:
            self.transport.write(b"".join(chunk(event) for event in (STOP, usage_chunk(), DONE)) + LAST_CHUNK)


async def main() -> None:
    """Listen on a port of 127.0.0.1, print it, and serve until killed."""
    seen = Seen()
    server = await asyncio.get_running_loop().create_server(lambda: Connection(seen), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
