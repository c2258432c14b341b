"""What one plain request costs, counted in Python calls: figures that do not depend on the machine."""

from __future__ import annotations

import asyncio
import collections
import json
import socket
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from tests.fakes.gateway import CHAT, chat_body, config, request, running_gateway
from tests.fakes.openai_answers import DONE, ROLE, STOP, completion, delta, stream
from tests.fakes.scripted_server import Script, ScriptedServer, answer

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="uvloop, on which the figures are counted, is not there"
)

MOST_CALLS = 68
"""For a plain request; nine of them gather its writes, which saves more than they take. A change that needs more calls
than this has to say what for."""
MOST_CALLS_AN_EVENT = 12
"""For each further event of a stream, passed on unchanged or repaired like the one before."""

# Too slow for the way of a request; they serve everything beside it.
KEPT_OUT = (
    "httpx2",
    "httpcore",
    "pydantic",
    "sqlalchemy",
    "fastapi",
    "starlette",
    "redis",
    "opentelemetry",
    "structlog",
)

Calls = collections.Counter[tuple[str, str]]


class Profile:
    """Counts the Python functions entered in the thread that made it, while it is switched on by another one."""

    def __init__(self) -> None:
        self.on = False
        self.runs: list[Calls] = []
        self._calls: Calls = collections.Counter()

    def __enter__(self) -> Profile:
        sys.setprofile(self._note)
        return self

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and self.on:
            self._calls[frame.f_code.co_filename, frame.f_code.co_qualname] += 1

    def record(self, work: Callable[[], None]) -> None:
        """Count what happens while *work*, which runs in another thread, is done."""
        self._calls = collections.Counter()
        self.on = True
        work()
        time.sleep(0.003)  # a request is accounted for right after its answer has left
        self.on = False
        self.runs.append(self._calls)

    @property
    def fewest(self) -> Calls:
        """The run that nothing in the background has added to."""
        return min(self.runs, key=lambda calls: calls.total())


class Upstream:
    """A scripted server in a thread of its own, so that its work is not counted."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self.port = 0

    def __enter__(self) -> Upstream:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *error: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(10)

    async def _serve(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        async with ScriptedServer(self._script) as server:
            self.port = server.port
            self._ready.set()
            await self._over.wait()


def exchange(connection: socket.socket, message: bytes, end: Callable[[bytes], bool]) -> None:
    connection.sendall(message)
    received = b""
    while not end(received):
        piece = connection.recv(65536)
        assert piece, received
        received += piece
    assert received.startswith(b"HTTP/1.1 200 "), received


def ask_again_and_again(port: int, profile: Profile, message: bytes, end: Callable[[bytes], bool]) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        for _ in range(5):
            exchange(connection, message, end)
            time.sleep(0.01)
        for _ in range(15):
            profile.record(lambda: exchange(connection, message, end))


def counted(script: Script, message: bytes, end: Callable[[bytes], bool]) -> Calls:
    """The calls of one request of many, all over the same two connections."""
    import uvloop

    async def measure(port: int) -> Calls:
        async with running_gateway(config(port)) as gateway:
            with Profile() as profile:
                await asyncio.to_thread(ask_again_and_again, gateway.port, profile, message, end)
            return profile.fewest

    with Upstream(script) as upstream, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(measure(upstream.port))


BODY = json.dumps(completion()).encode()
PLAIN = request(CHAT, chat_body())
STREAMED = request(CHAT, chat_body(stream=True))


CALLED = json.dumps(
    completion(
        choices=[
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {"id": "call_a", "type": "function", "function": {"name": "get_time", "arguments": "{}"}}
                    ],
                },
                "finish_reason": "tool_calls",
            }
        ]
    )
).encode()


def whole_answer(body: bytes) -> Callable[[bytes], bool]:
    return lambda received: received.endswith(body)


def pieces(count: int, opening: list[bytes], make: Callable[[str], bytes]) -> Script:
    """A stream of *count* events that *make* makes of a text each."""
    return stream(ROLE, *opening, *(make(f" {number} ") for number in range(count)), STOP, DONE)


def call(arguments: str, **members: Any) -> bytes:
    return delta(tool_calls=[{**members, "function": {"arguments": arguments}}])


NAMED = {"index": 0, "id": "call_a", "type": "function", "function": {"name": "get_time", "arguments": ""}}


def whole_stream(received: bytes) -> bool:
    return received.endswith(b"0\r\n\r\n")


@pytest.fixture(scope="module")
def plain() -> Calls:
    return counted([answer(BODY)], PLAIN, whole_answer(BODY))


def told(calls: Calls) -> str:
    lines = [f"{count:4} {file.rpartition('/')[2]} {name}" for (file, name), count in calls.most_common(60)]
    return "\n".join([f"{calls.total()} calls", *lines])


def test_a_plain_request_takes_few_calls(plain: Calls) -> None:
    assert 20 < plain.total() <= MOST_CALLS, told(plain)


def test_a_plain_request_enters_no_slow_library(plain: Calls) -> None:
    entered = {file for file, _ in plain if any(f"/{name}/" in file for name in KEPT_OUT)}
    assert entered == set()


def test_a_tool_call_takes_hardly_more_than_text(plain: Calls) -> None:
    called = counted([answer(CALLED)], PLAIN, whole_answer(CALLED))
    assert called.total() <= plain.total() + 10, told(called)


@pytest.mark.parametrize(
    ("opening", "make"),
    [
        pytest.param([], lambda text: delta(content=text), id="text"),
        pytest.param([], lambda text: delta(content=f'"{text}\n'), id="text with escapes"),
        pytest.param([], lambda text: delta(reasoning_content=text), id="reasoning"),
        pytest.param([], lambda text: delta(reasoning=text), id="reasoning by another name"),
        pytest.param([delta(content="<think>")], lambda text: delta(content=text), id="reasoning between tags"),
        pytest.param([delta(tool_calls=[NAMED])], lambda text: call(text, index=0), id="a tool call"),
        pytest.param([delta(tool_calls=[NAMED])], call, id="a tool call without an index"),
    ],
)
def test_an_event_of_a_stream_takes_few_calls(opening: list[bytes], make: Callable[[str], bytes]) -> None:
    short = counted(pieces(10, opening, make), STREAMED, whole_stream)
    long = counted(pieces(60, opening, make), STREAMED, whole_stream)
    assert not {file for file, _ in long if any(f"/{name}/" in file for name in KEPT_OUT)}
    assert (long.total() - short.total()) / 50 <= MOST_CALLS_AN_EVENT, told(long)
