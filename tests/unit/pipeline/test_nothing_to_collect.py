"""What a request has needed goes with it: nothing of it waits in circles for the garbage collector to come by.

The collector seldom looks at what has lived for a while, as streams have; until then it would all add up.
"""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from tests.fakes.gateway import CHAT, RunningGateway, chat_body, config, request, running_gateway
from tests.fakes.openai_answers import ROLE, delta, event, good_stream, refusal, stream, whole, words
from tests.fakes.scripted_server import Hang, Reset, Script, ScriptedServer, chunk

BEGUN = stream(ROLE, *words("Hello"), end=False)
ONE_CHOICE = {"params": {"n": {"support": "limited", "max": 1, "patch": "fan_out"}}}


@pytest.fixture
def resting_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.set_debug(0)
    gc.enable()
    gc.garbage.clear()


def circles() -> Counter[str]:
    """Our own objects that only the collector would free."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    gc.set_debug(0)
    kinds = (type(found) for found in gc.garbage)
    return Counter(kind.__qualname__ for kind in kinds if kind.__module__.startswith(("gateway.", "adapters.")))


async def _stays(gateway: RunningGateway, body: dict[str, Any], upstream: ScriptedServer) -> None:
    await gateway.chat(**body)


async def _leaves(gateway: RunningGateway, body: dict[str, Any], upstream: ScriptedServer) -> None:
    expected = len(upstream.requests) + body.get("n", 1)
    client = await gateway.connect()
    await client.send(request(CHAT, chat_body(**body)))
    await upstream.wait_until(lambda server: len(server.requests) == expected)
    await asyncio.sleep(0.02)
    client.reset()


@pytest.mark.parametrize(
    ("script", "body", "client"),
    [
        pytest.param(good_stream(), {"stream": True}, _stays, id="stream"),
        pytest.param([whole()], {}, _stays, id="whole"),
        pytest.param([refusal(503)], {}, _stays, id="refused"),
        pytest.param([*BEGUN, Reset()], {"stream": True}, _stays, id="broken"),
        pytest.param([*BEGUN, chunk(event({"error": "busy"})), Hang()], {"stream": True}, _stays, id="failed"),
        pytest.param([*BEGUN, *[chunk(b"data: {\n\n")] * 3, Hang()], {"stream": True}, _stays, id="malformed"),
        pytest.param([*BEGUN, chunk(delta(finish="error")), Hang()], {"stream": True}, _stays, id="failed-by-its-end"),
        pytest.param([*BEGUN, Hang()], {"stream": True}, _leaves, id="left-in-a-stream"),
        pytest.param([Hang()], {"stream": True}, _leaves, id="left-before-a-stream"),
        pytest.param([Hang()], {}, _leaves, id="left-before-an-answer"),
        pytest.param([whole()[:-5], Hang()], {}, _leaves, id="left-in-an-answer"),
        pytest.param(good_stream(), {"stream": True, "n": 2}, _stays, id="several-streams"),
        pytest.param([*BEGUN, Hang()], {"stream": True, "n": 2}, _leaves, id="left-in-several-streams"),
        pytest.param([Hang()], {"n": 2}, _leaves, id="left-before-several-answers"),
    ],
)
async def test_a_request_leaves_no_circles(
    resting_collector: None,
    script: Script,
    body: dict[str, Any],
    client: Callable[[RunningGateway, dict[str, Any], ScriptedServer], Awaitable[None]],
) -> None:
    async with ScriptedServer(script) as upstream:
        settings = config(upstream, retries={"attempts": 1})
        settings["providers"]["p1"]["overrides"] = ONE_CHOICE
        async with running_gateway(settings) as gateway:
            await client(gateway, body, upstream)  # what is made once is made now
            await gateway.rows()
            gc.collect()
            for _ in range(3):
                await client(gateway, body, upstream)
            await gateway.rows()
            await asyncio.sleep(0.02)

            assert circles() == {}
