"""Clients of a local engine, whose slots are few: who leaves gives back a place or a slot, and keys take turns."""

from __future__ import annotations

import asyncio
import contextlib
import json
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from gateway.engines import SHARED_VARIABLE
from gateway.pipeline.holds import Resolution
from tests.fakes.gateway import CHAT, KEY, RunningGateway, chat_body, request, running_gateway
from tests.fakes.openai_answers import good_stream, whole
from tests.fakes.scripted_server import Hang, RecordedRequest, Script, ScriptedServer, Until
from tests.integration.leaving import SOON, expect_nothing_left, leave, resolutions


def answering_after(event: asyncio.Event) -> Callable[[RecordedRequest], Script]:
    """An engine that answers once *event* is set, and streams where it is asked to."""
    return lambda sent: [Until(event), *(good_stream() if json.loads(sent.body).get("stream") else [whole()])]


@contextlib.asynccontextmanager
async def one_slot(
    script: Script | Callable[[RecordedRequest], Script], server: str
) -> AsyncIterator[tuple[ScriptedServer, RunningGateway]]:
    """A gateway in front of an engine with one slot, which another process owns."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "engine.sock"))
        Path(folder, "engine.state").write_text('["ready", "", false]')
        shared = json.dumps({"local": ["tiny", {"socket_path": path, "control": str(Path(folder, "engine"))}, 1]})
        settings = {
            "providers": {"local": {"type": "local"}},
            "models": {"m": {"targets": [{"provider": "local"}]}},
        }
        async with (
            ScriptedServer(script, unix_path=path) as engine,
            running_gateway(settings, server=server, environ={SHARED_VARIABLE: shared}) as gateway,
        ):
            yield engine, gateway


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("server", ["uvicorn", "asgi"])
async def test_a_client_may_leave_the_queue_of_a_local_engine(server: str, streamed: bool) -> None:
    done = asyncio.Event()
    async with one_slot(answering_after(done), server) as (engine, gateway):
        (queue,) = gateway.services.backends.queues.values()
        first = asyncio.create_task(gateway.chat())
        await engine.wait_until(lambda it: bool(it.requests))
        before = asyncio.all_tasks()
        client = await gateway.connect()
        await client.send(request(CHAT, chat_body(stream=streamed)))
        await gateway.wait_for(lambda: queue.waiting == 1)

        await leave(client, "close")

        await gateway.wait_for(lambda: queue.waiting == 0, SOON)
        done.set()
        assert (await first).status == 200
        await expect_nothing_left(gateway, before)
        rows = await gateway.rows()
        assert (queue.free_slots, len(engine.requests)) == (1, 1)
        assert resolutions(gateway) == {Resolution.VOID: 1, Resolution.SETTLED: 1}
    assert sorted(row["status"] for row in rows) == [200, 499]


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_client_that_leaves_gives_its_slot_back(streamed: bool) -> None:
    async with one_slot([Hang()], "uvicorn") as (engine, gateway):
        (queue,) = gateway.services.backends.queues.values()
        before = asyncio.all_tasks()
        client = await gateway.connect()
        await client.send(request(CHAT, chat_body(stream=streamed)))
        await engine.wait_until(lambda it: bool(it.requests))
        assert queue.free_slots == 0

        await leave(client, "close")

        await engine.wait_until(lambda it: it.open_connections == 0, SOON)
        await expect_nothing_left(gateway, before)
        assert queue.free_slots == 1
        assert resolutions(gateway) == {Resolution.ESTIMATED: 1}


async def test_the_queue_of_a_local_engine_is_fair_between_keys() -> None:
    other = "gw-other-key-0123456789abcdef"
    done = asyncio.Event()
    async with one_slot(answering_after(done), "uvicorn") as (engine, gateway):
        await gateway.services.keys.create("other", secret=other)
        (queue,) = gateway.services.backends.queues.values()
        asked = []
        for number, key in enumerate((KEY, KEY, KEY, other)):
            asked.append(asyncio.create_task(gateway.chat(key=key, user=str(number))))
            await gateway.wait_for(lambda: len(engine.requests) == 1 and queue.waiting == len(asked) - 1)
        done.set()
        await asyncio.gather(*asked)
        assert [json.loads(sent.body)["user"] for sent in engine.requests] == ["0", "1", "3", "2"]
