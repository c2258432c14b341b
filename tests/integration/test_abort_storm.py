"""Many clients at once that leave when they like: afterwards everything adds up, and nothing is left."""

from __future__ import annotations

import asyncio
import random

import pytest

from tests.fakes.gateway import CHAT, CLIENTS, SERVERS, chat_body, config, request, running_gateway
from tests.fakes.openai_answers import DONE, ROLE, STOP, good_stream, refusal, usage_chunk, whole, words
from tests.fakes.scripted_server import (
    LAST_CHUNK,
    Close,
    Hang,
    RecordedRequest,
    Reset,
    Script,
    ScriptedServer,
    Sleep,
    chunk,
    chunked_head,
)

SLOW_STREAM: Script = [
    chunked_head(),
    *(step for one in (ROLE, *words(*"abcdef"), STOP, usage_chunk(), DONE) for step in (chunk(one), Sleep(0.004))),
    LAST_CHUNK,
]
SCRIPTS: list[Script] = [
    [Sleep(0.01), whole()],
    [whole()],
    good_stream(),
    SLOW_STREAM,
    [Sleep(0.01), *SLOW_STREAM],
    [*SLOW_STREAM[:8], Reset()],
    [*SLOW_STREAM[:3], Close()],
    [refusal(503, headers="retry-after-ms: 10\r\n")],
    [refusal(429)],
    [Reset()],
    [Close()],
    [Hang()],
]


async def storm(seed: int, clients: int, server: str, upstream_client: str) -> None:
    chance = random.Random(seed)

    def script(sent: RecordedRequest) -> Script:
        return chance.choice(SCRIPTS)

    async with ScriptedServer(script) as one, ScriptedServer(script) as two:
        settings = config(one, two, timeouts={"first_event": "100ms", "stall": "100ms", "total": "3s"})
        settings["server"] = {"stream_keepalive": "30ms"}
        async with running_gateway(settings, server=server, upstream_client=upstream_client) as gateway:
            assert (await gateway.chat(n=129)).status == 400  # the key is known from here on
            before = asyncio.all_tasks()
            room = asyncio.Semaphore(20)

            async def call(streamed: bool, stays: float | None, rudely: bool) -> None:
                async with room:
                    client = await gateway.connect()
                    await client.send(request(CHAT, chat_body(stream=streamed)))
                    if stays is None:
                        answer = await client.answer()
                        assert answer.complete
                        assert streamed or answer.json
                    else:
                        await asyncio.sleep(stays)
                    client.reset() if rudely else await client.close()

            stays = [chance.choice([None, *(chance.uniform(0, 0.06) for _ in range(3))]) for _ in range(clients)]
            await asyncio.gather(*(call(chance.random() < 0.6, stay, chance.random() < 0.5) for stay in stays))

            await gateway.quiet()
            await gateway.wait_for(lambda: asyncio.all_tasks() - one._tasks - two._tasks <= before)
            assert gateway.services.ledger.open_holds == 0
            assert gateway.request_watches() == []
            if upstream_client == "own":
                await gateway.wait_for(lambda: gateway.upstream.in_use == 0)
            rows = (await gateway.rows())[1:]
            tried = gateway.metric("gateway_upstream_attempts_total")
    left_early = clients - len(rows)  # so early that the request had not been read yet
    assert 0 <= left_early <= sum(stay is not None for stay in stays)
    assert tried == sum(len(row["attempts"]) for row in rows)
    assert {row["status"] for row in rows} <= {200, 429, 499, 502, 503, 504}
    for row in rows:
        answered = [attempt for attempt in row["attempts"] if attempt["failure"] is None]
        assert len(answered) <= 1
        assert bool(answered) == (row["status"] == 200 and row["error_code"] is None)


@pytest.mark.parametrize("server", SERVERS)
async def test_a_gust_of_clients(server: str) -> None:
    await storm(1, 80, server, "own")


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("upstream_client", CLIENTS)
@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("seed", range(5))
async def test_a_storm_of_clients(server: str, upstream_client: str, seed: int) -> None:
    await storm(seed, 600, server, upstream_client)
