"""What rests with a target, and what does not: keys, several requests of one, reloads, figures."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes.gateway import config, provider, running_gateway
from tests.fakes.openai_answers import good_stream, refusal
from tests.fakes.scripted_server import RecordedRequest, Script, ScriptedServer, Sleep
from tests.fakes.shapes import in_turn
from tests.unit.pipeline.resting import BUSY, GOOD, LIMITED


def keys_of(server: ScriptedServer) -> list[str]:
    return [request.headers["authorization"].removeprefix("Bearer ") for request in server.requests]


def two_keys(server: ScriptedServer) -> dict[str, Any]:
    settings = config(server)
    settings["providers"]["p1"] = provider(server, api_keys=["sk-aaaaaaaaaaaa", "sk-bbbbbbbbbbbb"])
    del settings["providers"]["p1"]["api_key"]
    return settings


async def test_the_keys_of_a_provider_rest_one_by_one() -> None:
    waits = {1: "Retry-After: 30\r\n", 4: "Retry-After: 20\r\n"}

    def script(request: RecordedRequest) -> Script:
        return [refusal(429, "slow", waits[request.number])] if request.number in waits else GOOD

    async with ScriptedServer(script) as one, running_gateway(two_keys(one)) as gateway:
        got = [await gateway.chat() for _ in range(4)]
    a, b = "sk-aaaaaaaaaaaa", "sk-bbbbbbbbbbbb"
    assert keys_of(one) == [a, b, b, b]
    assert [answer.status for answer in got] == [200, 200, 429, 429]
    assert [answer.headers.get("retry-after") for answer in got[2:]] == ["20", "20"]


@pytest.mark.parametrize("status", [401, 402])
async def test_a_key_that_is_used_up_leaves_the_work_to_the_others_and_their_rests(status: int) -> None:
    scripts: dict[int, Script] = {1: [refusal(status, code="insufficient_quota")], 3: LIMITED}
    async with (
        ScriptedServer(lambda request: scripts.get(request.number, GOOD)) as one,
        running_gateway(two_keys(one)) as gateway,
    ):
        got = [await gateway.chat() for _ in range(3)]
    assert [answer.status for answer in got] == [200, 429, 429]
    assert keys_of(one) == ["sk-aaaaaaaaaaaa", "sk-bbbbbbbbbbbb", "sk-bbbbbbbbbbbb"]


async def test_an_overloaded_server_rests_whichever_key_is_used() -> None:
    async with ScriptedServer(in_turn(BUSY, GOOD)) as one, running_gateway(two_keys(one)) as gateway:
        got = [await gateway.chat() for _ in range(2)]
    assert [answer.status for answer in got] == [503, 503]
    assert len(one.requests) == 1


NO_N = {"params": {"n": {"support": "limited", "max": 1, "patch": "fan_out"}}}


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_a_limit_that_one_of_several_requests_meets_lets_the_target_rest(streamed: bool) -> None:
    good = good_stream() if streamed else GOOD

    def script(request: RecordedRequest) -> Script:
        # The others are slow, or one of them would be told before it fails.
        return LIMITED if request.number == 2 else [Sleep(0.2), *good] if request.number <= 3 else good

    async with ScriptedServer(script) as one, ScriptedServer(good) as two:
        settings = config(one, two)
        settings["models"]["m"]["targets"][0]["overrides"] = NO_N
        async with running_gateway(settings) as gateway:
            first = await gateway.chat(n=3, stream=streamed)
            seen = len(one.requests)
            again = await gateway.chat(stream=streamed)
    assert first.headers["x-gateway-target"] == again.headers["x-gateway-target"] == "p2/up2"
    assert len(one.requests) == seen <= 3


async def test_rests_outlive_a_reload() -> None:
    async with ScriptedServer(in_turn(LIMITED, GOOD)) as one:
        settings = config(one)
        async with running_gateway(settings) as gateway:
            await gateway.chat()
            settings["models"]["n"] = settings["models"]["m"]
            settings["providers"]["p1"]["max_concurrency"] = 7
            gateway.file.write_text(json.dumps(settings))
            await gateway.services.reloads.reload("test")
            got = [await gateway.chat(model=model) for model in ("m", "n")]
    assert [answer.status for answer in got] == [429, 429]
    assert len(one.requests) == 1


async def test_a_new_key_does_not_rest() -> None:
    async with ScriptedServer(in_turn(LIMITED, GOOD)) as one:
        settings = config(one)
        async with running_gateway(settings) as gateway:
            await gateway.chat()
            settings["providers"]["p1"]["api_key"] = "sk-another-0123456789"
            gateway.file.write_text(json.dumps(settings))
            await gateway.services.reloads.reload("test")
            got = await gateway.chat()
    assert got.status == 200


async def test_the_health_of_a_target_is_a_gauge() -> None:
    async with (
        ScriptedServer(in_turn(LIMITED, GOOD)) as one,
        ScriptedServer(GOOD) as two,
        running_gateway(config(one, two)) as gateway,
    ):
        await gateway.chat()
        shown = [gateway.metric("gateway_target_healthy", target=name) for name in ("p1/up1", "p2/up2")]
    assert shown == [0, 1]
