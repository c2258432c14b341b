"""However the bytes of several streams come, the client gets each of them whole, under its own number."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.adapter import Adapter
from adapters.registry import load_spec
from adapters.repair.stream import StreamRepair
from adapters.target import Target
from adapters.types import Operation
from gateway.pipeline.fan_out import MergedStream
from gateway.pipeline.tally import SentCall
from gateway.upstream.base import BodySink, UpstreamResponse
from tests.fakes.body_sink import CollectingSink
from tests.fakes.openai_answers import DONE, ROLE, STOP, payloads, usage_chunk, words

ADAPTER = Adapter(Target("p/up", "p", "up", load_spec("openai_compatible")))
TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)


class Upstream:
    """A stream that the test feeds, and what was asked of it."""

    def __init__(self) -> None:
        self.status: int = 200
        self.headers: Mapping[str, str] = {}
        self.sink: BodySink | None = None
        self.sent: SentCall | None = SentCall({})
        self.repair: StreamRepair | None = ADAPTER.repair.stream(Operation.CHAT, None)
        self.response: UpstreamResponse = self
        self.closed = False

    async def read(self, limit_bytes: int) -> bytes:
        raise AssertionError(limit_bytes)

    def stream(self, sink: BodySink) -> None:
        self.sink = sink

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def close(self) -> None:
        self.closed = True


def pieces(body: bytes, cuts: list[int]) -> list[bytes]:
    """*body* cut where *cuts* say."""
    places = sorted({cut % len(body) for cut in cuts} - {0})
    return [body[start:end] for start, end in zip([0, *places], [*places, len(body)], strict=True)]


async def told(bodies: list[list[bytes]], order: list[int]) -> tuple[CollectingSink, list[Upstream]]:
    """What comes of the streams when their pieces arrive in that order."""
    upstreams = [Upstream() for _ in bodies]

    async def opened(upstream: Upstream) -> Upstream:
        return upstream

    merged, sink = MergedStream([partial(opened, upstream) for upstream in upstreams], ADAPTER), CollectingSink()
    merged.stream(sink)
    while any(upstream.sink is None for upstream in upstreams):
        await asyncio.sleep(0)
    left = [list(body) for body in bodies]
    for turn in [*order, *(number for number, body in enumerate(bodies) for _ in body)]:
        number = turn % len(bodies)
        if left[number]:
            found = upstreams[number].sink
            assert found is not None
            found.feed(left[number].pop(0))
            if not left[number]:
                found.finish(None)
    return sink, upstreams


@settings(deadline=None, max_examples=150)
@given(
    texts=st.lists(st.lists(TEXT, min_size=1, max_size=4), min_size=1, max_size=4),
    cuts=st.lists(st.integers(0, 4000), max_size=12),
    order=st.lists(st.integers(0, 3), max_size=40),
)
def test_every_stream_is_told_whole_under_its_own_number(
    texts: list[list[str]], cuts: list[int], order: list[int]
) -> None:
    bodies = [pieces(b"".join([ROLE, *words(*said), STOP, usage_chunk(), DONE]), cuts) for said in texts]
    sink, upstreams = asyncio.run(told(bodies, order))

    events: list[Any] = payloads(sink.data)
    heard: dict[int, str] = {}
    finished: list[int] = []
    for choice in (choice for one in events[:-1] for choice in one["choices"]):
        heard[choice["index"]] = heard.get(choice["index"], "") + (choice["delta"].get("content") or "")
        if choice["finish_reason"]:
            finished.append(choice["index"])
    assert heard == {number: "".join(said) for number, said in enumerate(texts)}
    assert sorted(finished) == list(range(len(texts)))
    assert events[-1] == "[DONE]"
    assert events[-2]["usage"]["completion_tokens"] == 3 * len(texts)
    assert events[-2]["usage"]["prompt_tokens"] == 9
    assert sink.ends == [None]
    assert all(upstream.closed for upstream in upstreams)
