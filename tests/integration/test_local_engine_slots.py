"""The gateway's client in front of a real engine: slots are taken, waited for, and free again after every end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from adapters.errors import ProviderError
from adapters.types import FailureKind
from gateway.deadlines import Deadlines
from gateway.upstream.base import RequestHead, UpstreamResponse
from gateway.upstream.http1 import Http1Upstream
from gateway.upstream.local import LocalUpstream, local_origin
from local_engine import probe
from local_engine.engine import LocalEngine
from local_engine.state import EngineState
from tests.fakes.body_sink import CollectingSink

# An answer of this length takes the model 40 seconds and more. Left early it must free its slot in one; the limit
# leaves room for a machine that is busy with other things.
LONG_ANSWER = 4000
SLOT_FREE_LIMIT_SECONDS = 20.0
SOME_CONTENT_BYTES = 800


class Client:
    """Sends chat completions through a `LocalUpstream`."""

    def __init__(self, engine: LocalEngine, inner: Http1Upstream, queue_limit: int) -> None:
        self.upstream = LocalUpstream(engine, inner, queue_limit)
        self._head = RequestHead(
            "POST", "/v1/chat/completions", local_origin(engine), (("content-type", "application/json"),)
        )

    async def send(self, max_tokens: int, *, stream: bool = False) -> UpstreamResponse:
        body: dict[str, Any] = {"messages": [{"role": "user", "content": "Tell a long story."}]}
        # Without an end-of-sequence token to stop it, the model talks until the limit.
        body |= {"max_tokens": max_tokens, "stream": stream, "logit_bias": {"2": -100}}
        return await self.upstream.send(self._head, json.dumps(body).encode())

    async def complete(self, max_tokens: int) -> dict[str, Any]:
        response = await self.send(max_tokens)
        body = await response.read(1 << 20)
        assert response.status == 200, body
        answer: dict[str, Any] = json.loads(body)
        return answer


async def until_busy(engine: LocalEngine) -> None:
    """Return when the engine is at work on an answer."""
    async with asyncio.timeout(10):
        while not (await probe.slots(engine.address))[0]["is_processing"]:
            await asyncio.sleep(0.02)


@pytest.fixture
async def connect() -> AsyncIterator[Callable[..., Client]]:
    deadlines = Deadlines()
    inner = Http1Upstream(deadlines)
    yield lambda engine, queue_limit=8: Client(engine, inner, queue_limit)
    await inner.aclose()
    deadlines.close()


async def test_a_streamed_answer_comes_whole_and_frees_its_slot(
    engine: LocalEngine, connect: Callable[..., Client]
) -> None:
    client = connect(engine)
    sink = CollectingSink()
    response = await client.send(5, stream=True)
    response.stream(sink)

    assert await sink.wait_for_end() is None
    response.close()
    assert sink.data.rstrip().endswith(b"data: [DONE]")
    assert client.upstream.free_slots == 1


async def test_requests_beyond_the_slots_wait_their_turn(engine: LocalEngine, connect: Callable[..., Client]) -> None:
    client = connect(engine)
    answers = await asyncio.gather(*(client.complete(3) for _ in range(4)))

    assert [answer["usage"]["completion_tokens"] for answer in answers] == [3, 3, 3, 3]
    assert client.upstream.free_slots == 1


async def test_a_full_queue_refuses_at_once(engine: LocalEngine, connect: Callable[..., Client]) -> None:
    client = connect(engine, queue_limit=1)
    occupying = await client.send(400, stream=True)
    waiting = asyncio.create_task(client.complete(1))
    await asyncio.sleep(0)

    with pytest.raises(ProviderError) as refusal:
        await client.send(1)

    assert refusal.value.kind is FailureKind.NO_CAPACITY
    assert not refusal.value.sent
    occupying.close()
    await waiting


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "plain"])
async def test_leaving_an_answer_frees_the_slot_of_the_engine(
    start_engine: Callable[..., LocalEngine], connect: Callable[..., Client], streamed: bool
) -> None:
    engine = start_engine(context=4096)
    await engine.start()
    await engine.wait_ready(60)
    client = connect(engine)
    if streamed:
        sink = CollectingSink()
        response = await client.send(LONG_ANSWER, stream=True)
        response.stream(sink)
        await sink.wait_for_bytes(SOME_CONTENT_BYTES)
        response.close()
    else:
        task = asyncio.create_task(client.complete(LONG_ANSWER))
        await until_busy(engine)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert client.upstream.free_slots == 1

    async with asyncio.timeout(SLOT_FREE_LIMIT_SECONDS):
        await client.complete(1)


async def test_leaving_while_a_long_prompt_is_read_frees_the_slot(
    start_engine: Callable[..., LocalEngine], connect: Callable[..., Client]
) -> None:
    engine = start_engine(context=8192)
    await engine.start()
    await engine.wait_ready(60)
    client = connect(engine)
    # Reading this prompt takes 40 seconds and more.
    long_prompt = json.dumps({"prompt": "word " * 7000, "max_tokens": 1}).encode()
    head = RequestHead("POST", "/v1/completions", local_origin(engine), (("content-type", "application/json"),))
    task = asyncio.create_task(client.upstream.send(head, long_prompt))
    await until_busy(engine)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    async with asyncio.timeout(SLOT_FREE_LIMIT_SECONDS):
        await client.complete(1)


async def test_leaving_the_queue_leaves_the_slots_alone(engine: LocalEngine, connect: Callable[..., Client]) -> None:
    client = connect(engine)
    occupying = await client.send(400, stream=True)
    waiting = asyncio.create_task(client.send(1))
    await asyncio.sleep(0)
    assert client.upstream.waiting == 1

    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting

    assert client.upstream.waiting == 0
    assert client.upstream.free_slots == 0
    occupying.close()
    assert client.upstream.free_slots == 1


async def test_an_engine_that_dies_in_an_answer_breaks_it_off(
    engine: LocalEngine, connect: Callable[..., Client]
) -> None:
    client = connect(engine)
    sink = CollectingSink()
    response = await client.send(400, stream=True)
    response.stream(sink)
    await sink.wait_for_bytes(SOME_CONTENT_BYTES)
    assert engine.pid is not None
    os.kill(engine.pid, signal.SIGKILL)

    error = await sink.wait_for_end()

    assert error is not None
    assert error.kind is FailureKind.INTERRUPTED
    assert client.upstream.free_slots == 1
    while engine.state is EngineState.READY:
        await asyncio.sleep(0.01)
    assert (await client.complete(2))["usage"]["completion_tokens"] == 2, "the next request waits for the restart"


async def test_a_failed_engine_is_told_from_a_busy_one(
    start_engine: Callable[..., LocalEngine], connect: Callable[..., Client]
) -> None:
    engine = start_engine(model="/nowhere/model.gguf")
    await engine.start()
    client = connect(engine)

    with pytest.raises(ProviderError, match="not ready") as failure:
        await client.send(1)

    assert failure.value.kind is FailureKind.ENGINE_DOWN
    assert not failure.value.sent
    assert "no model file" in failure.value.detail
    assert client.upstream.free_slots == 1


@pytest.mark.parametrize(
    ("path", "more"),
    [
        (
            "/v1/chat/completions",
            {"messages": [{"role": "user", "content": "Hi"}], "logprobs": True, "top_logprobs": 2},
        ),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}], "stop": ["!", "."]}),
        ("/v1/completions", {"prompt": "The sea is"}),
    ],
    ids=["chat", "stop", "text"],
)
async def test_a_folded_answer_says_what_the_plain_one_says(
    engine: LocalEngine, connect: Callable[..., Client], path: str, more: dict[str, Any]
) -> None:
    body = {"max_tokens": 6, "temperature": 0, "seed": 1, "cache_prompt": False} | more
    plain = await probe.ask(engine.address, path, body)
    head = RequestHead("POST", path, local_origin(engine), (("content-type", "application/json"),))
    response = await connect(engine).upstream.send(head, json.dumps(body).encode())
    folded = json.loads(await response.read(1 << 20))

    for answer in (plain, folded):
        for changing in ("id", "created", "timings"):
            answer.pop(changing, None)
    assert _rounded(folded) == _rounded(plain)


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        # Absent and null say the same.
        return {name: _rounded(member) for name, member in value.items() if member is not None}
    if isinstance(value, list):
        return [_rounded(member) for member in value]
    return round(value, 2) if isinstance(value, float) else value
