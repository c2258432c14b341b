"""Clients of every temper: patient, slow, and leaving before the first byte or in the middle; what became of each."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.openai_answers import text_of
from tests.fakes.raw_client import RawClient, post
from tests.fakes.shapes import LOOK
from tests.soak.upstream import THICK_BYTES, THICK_EVENTS, text_of_words

_SMALL_BUFFER = 8192
_LONGEST_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Temper:
    """What a kind of client asks for, and how it behaves."""

    name: str
    share: int
    """How many of the clients are such, against those of the other kinds."""
    manner: str = "words"
    """That of the upstream."""
    model: str = "plain"
    stream: bool = True
    leaves: bool = False
    slow: bool = False
    asks: Mapping[str, Any] = field(default_factory=dict)


_TWO, _TOOLS = {"n": 2}, {"tools": [LOOK]}
# More than the target takes, so that the last are looked for by the gateway; only one of them ever comes.
_STOPS = {"stop": ["b", "c", "e", "f", "g", "word5 "]}

TEMPERS = (
    Temper("patient", 30),
    Temper("patient-whole", 8, stream=False),
    Temper("slow", 6, "thick", slow=True),
    Temper("slow-leaves", 4, "thick", slow=True, leaves=True),
    Temper("leaves-stream", 14, leaves=True),
    Temper("leaves-silence", 8, "silent", leaves=True),
    Temper("leaves-pause", 6, "halting", leaves=True),
    Temper("leaves-whole-silence", 7, "silent", stream=False, leaves=True),
    Temper("leaves-whole-middle", 6, "halting", stream=False, leaves=True),
    Temper("two", 3, model="shaped", asks=_TWO),
    Temper("two-whole", 2, model="shaped", stream=False, asks=_TWO),
    Temper("two-leaves", 3, model="shaped", leaves=True, asks=_TWO),
    Temper("two-leaves-silence", 2, "silent", "shaped", leaves=True, asks=_TWO),
    Temper("two-whole-leaves", 2, "silent", "shaped", stream=False, leaves=True, asks=_TWO),
    Temper("stops", 2, asks=_STOPS),
    Temper("tools", 2, model="shaped", asks=_TOOLS),
    Temper("tools-whole", 1, model="shaped", stream=False, asks=_TOOLS),
    Temper("tools-leaves", 1, "silent", "shaped", leaves=True, asks=_TOOLS),
    Temper("refused", 1, "refuse"),
    Temper("broken", 1, "break"),
)


@dataclass(slots=True)
class Crowd:
    """Clients that come one after the other in as many lines as there shall be at a time."""

    port: int
    authorization: str
    chance: random.Random
    served: Counter[str] = field(default_factory=Counter)
    surprises: list[str] = field(default_factory=list)
    """What no upstream had caused."""
    departures: dict[int, tuple[Temper, float]] = field(default_factory=dict)
    """When the client of each request that was left has gone."""
    lag_seconds: list[float] = field(default_factory=list)
    """How late this process came to what was due, every now and then."""
    open: int = 0
    most_open: int = 0
    number: int = 0
    """That of the last client."""

    async def line(self, until: float) -> None:
        """One client after the other, until `time.monotonic` says *until*."""
        await asyncio.sleep(self.chance.uniform(0, 3))  # they do not all come in the same moment
        while time.monotonic() < until:
            (temper,) = self.chance.choices(TEMPERS, [one.share for one in TEMPERS])
            self.number += 1
            number = self.number
            self.open += 1
            self.most_open = max(self.open, self.most_open)
            try:
                async with asyncio.timeout(_LONGEST_SECONDS):
                    await self._call(temper, number)
            except (TimeoutError, OSError, EOFError, AssertionError) as surprise:
                self.surprises.append(f"{temper.name} {number}: {type(surprise).__name__} {surprise}"[:500])
            finally:
                self.open -= 1
            self.served[temper.name] += 1

    async def _call(self, temper: Temper, number: int) -> None:
        buffers: dict[str, int] = {"receive_buffer": _SMALL_BUFFER, "limit": _SMALL_BUFFER} if temper.slow else {}
        client = await RawClient.connect(self.port, **buffers)
        try:
            body = {
                "model": temper.model,
                "messages": [{"role": "user", "content": "Tell me."}],
                "stream": temper.stream,
                "user": f"{number}/{temper.manner}",
                **temper.asks,
            }
            await client.send(post("/v1/chat/completions", json.dumps(body).encode(), self.authorization))
            if temper.leaves:
                await self._wait_a_while(temper, client)
                self._leave(temper, number, client)
            else:
                await self._stay(temper, number, client)
        finally:
            client.writer.transport.abort()

    async def _wait_a_while(self, temper: Temper, client: RawClient) -> None:
        if temper.manner == "silent" or not temper.stream:
            await asyncio.sleep(self.chance.uniform(0.05, 2.0))
            return
        status, _ = await client.head()
        assert status == 200, f"status {status}"
        for _ in range(self.chance.randint(1, 6) if temper.manner != "halting" else 1):
            if not await client.chunk():
                return
            if temper.slow:
                await asyncio.sleep(self.chance.uniform(0.05, 0.4))

    def _leave(self, temper: Temper, number: int, client: RawClient) -> None:
        if self.chance.random() < 0.5:
            client.reset()
        else:
            client.writer.close()
        # The event loop closes the socket in its next round, and does this right after.
        asyncio.get_running_loop().call_soon(self._note_departure, temper, number)

    def _note_departure(self, temper: Temper, number: int) -> None:
        self.departures[number] = temper, time.monotonic()

    async def _stay(self, temper: Temper, number: int, client: RawClient) -> None:
        status, _ = await client.head() if temper.stream else (0, {})
        if temper.manner == "refuse":
            assert status in (502, 503), f"status {status}"
            return
        if not temper.stream:
            answer = await client.answer(_LONGEST_SECONDS)
            assert answer.status == 200, answer.body
            self._check_whole(temper, number, answer.json["choices"])
            return
        assert status == 200, f"status {status}"
        pieces = []
        while piece := await client.chunk():
            pieces.append(piece)
            if temper.slow:
                await asyncio.sleep(self.chance.uniform(0.05, 0.4))
        self._check_stream(temper, number, b"".join(pieces))

    @staticmethod
    def _check_whole(temper: Temper, number: int, choices: list[dict[str, Any]]) -> None:
        assert len(choices) == temper.asks.get("n", 1)
        for choice in choices:
            if "tools" in temper.asks:
                assert choice["message"]["tool_calls"][0]["function"]["name"] == "look"
            else:
                assert choice["message"]["content"] == "".join(text_of_words(number))

    @staticmethod
    def _check_stream(temper: Temper, number: int, body: bytes) -> None:
        ended = body.endswith(b"data: [DONE]\n\n")
        if temper.manner == "break":
            assert not ended
            assert b'"error"' in body
            return
        assert ended, body[-300:]
        if "tools" in temper.asks:
            assert b'"tool_calls"' in body, body[:300]
            return
        expected = "".join(text_of_words(number))
        if temper.manner == "thick":
            expected = "x" * THICK_BYTES * THICK_EVENTS
        if "stop" in temper.asks:
            expected = expected.partition("word5 ")[0]
        told = text_of(body)
        assert len(told) == len(expected) * temper.asks.get("n", 1), told[-300:]
