"""Any stream, in any pieces: what the client gets is the same, and says no more than the upstream did."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.adapter import Adapter
from adapters.registry import load_spec
from adapters.target import Target
from adapters.types import Operation, Usage
from gateway.deadlines import Deadlines
from gateway.pipeline.call import Attempt, Call
from gateway.pipeline.clock import AttemptClock
from gateway.pipeline.holds import CountingLedger
from gateway.pipeline.relay import StreamRelay
from gateway.pipeline.stream_out import StreamOut
from gateway.upstream.base import BodySink
from tests.fakes.openai_answers import DONE, ROLE, STOP, delta, event, payloads, text_of, usage_chunk

ADAPTER = Adapter(Target("p/up", "p", "up", load_spec("openai_compatible")))
BROKEN = b"data: {broken\n\n"
PIECES: dict[str, bytes] = {
    "role": ROLE,
    "a": delta(content="a"),
    "b": delta(content="b\u2028\u00e9"),
    "tool": delta(tool_calls=[{"index": 0, "function": {"arguments": "{"}}]),
    "thought": delta(reasoning_content="hm"),
    "comment": b": ping\n\n",
    "broken": BROKEN,
    "empty": event({"choices": []}),
    "usage": usage_chunk(),
    "usage-on-choice": usage_chunk(choices=[{"index": 0, "delta": {"content": "c"}}]),
    "error": event({"error": {"message": "gone", "code": 503}}),
    "stop": STOP,
    "done": DONE,
}
CONTENT = {"a", "b", "tool", "thought", "usage-on-choice"}


class Captured:
    """An exchange that remembers what it was told to send."""

    method, path, peer = "POST", "/v1/chat/completions", ""
    body: bytes | bytearray = b""
    headers: Sequence[tuple[bytes, bytes]] = ()

    def __init__(self) -> None:
        self.started = self.paused = self.ended = False
        self.on_flow: Callable[[bool], None] | None = None
        self.sent = b""

    def respond(self, status: int, headers: bytes, body: bytes) -> None:
        raise AssertionError("a stream is never answered whole")

    def start(self, status: int, headers: bytes) -> None:
        assert not self.started
        self.started = True

    def write(self, data: bytes) -> None:
        assert self.started
        assert not self.ended
        assert data
        self.sent += data

    def end(self) -> None:
        assert not self.ended
        self.ended = True

    def abort(self) -> None:
        raise AssertionError("nobody breaks off here")


class Silent:
    """An upstream's answer that is fed by the test."""

    status = 200
    headers: Mapping[str, str] = {}

    async def read(self, limit_bytes: int) -> bytes:
        raise AssertionError("a stream is never read whole")

    def stream(self, sink: BodySink) -> None: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def close(self) -> None: ...


class Outcome:
    """What came of one stream."""

    def __init__(self, pieces: Sequence[bytes], wants_usage: bool) -> None:
        deadlines = Deadlines()
        self.exchange = Captured()
        self.settled: list[Usage | None] = []
        call = Call(self.exchange, Operation.CHAT, time.monotonic(), 0.0, wants_usage=wants_usage)
        attempt = Attempt(ADAPTER.target, CountingLedger().hold("key", ADAPTER.target), time.monotonic())
        out = StreamOut(self.exchange, deadlines, time.monotonic, 15.0, lambda: b"")
        clock = AttemptClock(deadlines, time.monotonic, None, time.monotonic() + 30, time.monotonic() + 600)
        relay = StreamRelay(
            call,
            attempt,
            out,
            clock,
            Silent(),
            now=time.monotonic,
            stall_seconds=30.0,
            error_of=ADAPTER.error,
            settle=self.settled.append,
            repair=ADAPTER.repair.stream(Operation.CHAT, None),
            model=None,
        )
        for piece in pieces:
            relay.feed(piece)
        relay.finish(None)
        assert relay.done.done()
        clock.stop()
        out.close()
        deadlines.close()
        self.failure = relay.failure.kind if relay.failure is not None else None
        self.committed = relay.committed
        self.sent = self.exchange.sent


def cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    edges = [0, *sorted({place % (len(data) + 1) for place in places} - {0}), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges) if start < end]


STREAMS = st.lists(st.sampled_from(sorted(PIECES)), max_size=12)


async def check(names: list[str], places: list[int], wants_usage: bool) -> None:
    data = b"".join(PIECES[name] for name in names)
    whole, split = Outcome([data], wants_usage), Outcome(cut(data, places), wants_usage)
    assert (split.sent, split.failure, split.committed) == (whole.sent, whole.failure, whole.committed)

    heard = names[: names.index("done")] if "done" in names else names
    succeeded = whole.failure is None
    assert whole.sent.endswith(DONE) == succeeded
    assert DONE not in whole.sent[: -len(DONE)]
    assert whole.exchange.ended == succeeded
    assert whole.settled == ([None] if succeeded and not _usage_heard(heard) else [Usage(9, 3)] if succeeded else [])
    if succeeded:
        assert "stop" in heard
        assert "error" not in heard
        assert heard.count("broken") <= 2
    if not whole.committed:
        assert whole.sent == b""
    assert b"ping" not in whole.sent
    assert b"broken" not in whole.sent
    assert b'"error"' not in whole.sent
    shown = [one for one in payloads(whole.sent) if one != "[DONE]"]
    assert [one for one in shown if one.get("usage")] == (
        [one for one in shown if not one["choices"] and "usage" in one][-1:]
        if wants_usage and succeeded and _usage_heard(heard)
        else []
    )
    said = "".join(
        json.loads(PIECES[name][6:])["choices"][0]["delta"].get("content") or "" for name in heard if name in CONTENT
    )
    assert said.startswith(text_of(whole.sent))
    assert not succeeded or said == text_of(whole.sent)


def _usage_heard(names: list[str]) -> bool:
    return "usage" in names or "usage-on-choice" in names


@given(STREAMS, st.lists(st.integers(0, 10**4), max_size=8), st.booleans())
@settings(max_examples=150, deadline=None)
async def test_a_stream_is_relayed_the_same_in_any_pieces(names: list[str], places: list[int], usage: bool) -> None:
    await check(names, places, usage)


@pytest.mark.long
@given(STREAMS, st.lists(st.integers(0, 10**4), max_size=40), st.booleans())
@settings(max_examples=5000, deadline=None)
async def test_many_streams_are_relayed_the_same_in_any_pieces(
    names: list[str], places: list[int], usage: bool
) -> None:
    await check(names, places, usage)


async def test_a_stream_byte_by_byte() -> None:
    names = ["role", "a", "comment", "b", "broken", "usage-on-choice", "stop", "usage", "done"]
    data = b"".join(PIECES[name] for name in names)
    single: list[Any] = [bytes([byte]) for byte in data]
    assert Outcome(single, True).sent == Outcome([data], True).sent
