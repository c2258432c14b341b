"""Whole answers through the real gateway: what reaches the client, and what of an upstream never does."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes.gateway import CLIENTS, PROVIDER_KEY, SERVERS, config, running_gateway
from tests.fakes.openai_answers import (
    DONE,
    ROLE,
    STOP,
    completion,
    stream,
    usage_chunk,
    whole,
    words,
)
from tests.fakes.scripted_server import ScriptedServer, answer
from tests.unit.pipeline.plain_requests import ask


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("server", SERVERS)
async def test_an_answer_reaches_the_client_as_it_came(server: str, client: str) -> None:
    body = json.dumps(completion(x_vendor={"kept": [1, 2.50]})).encode()
    async with (
        ScriptedServer([answer(body)]) as upstream,
        running_gateway(config(upstream), server=server, upstream_client=client) as gateway,
    ):
        got = await gateway.chat()
        again = await gateway.chat()
    assert (got.status, got.body) == (200, body)
    assert again.body == body
    assert upstream.connections == 1


async def test_the_headers_say_who_answered_and_at_what_cost() -> None:
    got, _ = await ask([whole()])
    headers = got.headers
    assert headers["content-type"] == "application/json"
    assert headers["x-gateway-model"] == "m"
    assert headers["x-gateway-provider"] == "p1"
    assert headers["x-gateway-target"] == "p1/up1"
    assert headers["x-gateway-attempts"] == "1"
    assert headers["x-gateway-cache"] == "off"
    assert headers["x-gateway-cost-usd"] == "0.000015000"  # 9 at 1 USD a million, 3 at 2
    assert "x-gateway-fallback-from" not in headers
    assert "x-gateway-adjusted" not in headers
    names = [part.partition(";dur=")[0] for part in headers["server-timing"].split(", ")]
    assert names == ["gw", "queue", "upstream"]
    assert all(float(part.partition(";dur=")[2]) >= 0 for part in headers["server-timing"].split(", "))


async def test_a_clients_request_id_comes_back_under_both_names() -> None:
    got, _ = await ask([whole()], "X-Request-Id: mine-42")
    assert got.headers["x-request-id"] == got.headers["request-id"] == "mine-42"


@pytest.mark.parametrize("bad", ["a" * 129, "with space", 'quo"te'])
async def test_an_unsafe_request_id_is_replaced(bad: str) -> None:
    got, _ = await ask([whole()], f"X-Request-Id: {bad}")
    assert got.headers["x-request-id"] == got.headers["request-id"] != bad
    assert got.headers["x-request-id"]


async def test_no_header_of_the_upstream_reaches_the_client() -> None:
    leaking = f"set-cookie: a=b\r\nx-secret: {PROVIDER_KEY}\r\nserver: nginx\r\nx-request-id: theirs\r\nx-thing: 1\r\n"
    got, _ = await ask([whole(headers=leaking)])
    assert {"set-cookie", "x-secret", "server", "x-thing"}.isdisjoint(got.headers)
    assert got.headers["x-request-id"] != "theirs"
    assert PROVIDER_KEY not in repr(got.headers)


async def test_no_header_of_the_client_reaches_the_upstream() -> None:
    _, server = await ask(
        [whole()],
        "Cookie: session=1",
        "X-Api-Key: something",
        "X-Stainless-Lang: python",
        "X-Gateway-Tags: a=b",
        "OpenAI-Organization: org",
        "Forwarded: for=1.2.3.4",
        "X-Forwarded-For: 1.2.3.4",
        "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "X-Thing: 1",
    )
    (request,) = server.requests
    allowed = {"host", "accept-encoding", "content-type", "user-agent", "authorization", "content-length"}
    assert set(request.headers) == allowed | {"x-gateway-hop"}
    assert request.headers["authorization"] == f"Bearer {PROVIDER_KEY}"
    assert request.headers["accept-encoding"] == "identity"


async def test_the_model_is_the_targets_and_all_else_goes_as_the_client_wrote_it() -> None:
    async with ScriptedServer([whole()]) as server, running_gateway(config(server)) as gateway:
        await gateway.post(
            "/v1/chat/completions",
            b'{"model":"m","messages":[{"role":"user","content":"x"}],"seed":7,"vendor_thing":{"a": 1.50}}',
        )
    sent = server.requests[0].body
    assert json.loads(sent)["model"] == "up1"
    assert b'"vendor_thing":{"a": 1.50}' in sent
    assert b'"seed":7' in sent
    assert "stream_options" not in json.loads(sent)


async def test_the_answer_can_carry_the_alias_as_its_model() -> None:
    async with (
        ScriptedServer([whole()]) as server,
        running_gateway({**config(server), "response_model": "alias"}) as gateway,
    ):
        got = await gateway.chat()
    assert got.json == completion(model="m")


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/chat/completions", "/openai/v1/chat/completions"])
async def test_the_route_answers_under_each_prefix(path: str) -> None:
    async with ScriptedServer([whole()]) as server, running_gateway(config(server)) as gateway:
        got = await gateway.post(path, {"model": "m", "messages": [{"role": "user", "content": "x"}]})
    assert got.status == 200
    assert server.requests[0].path == "/v1/chat/completions"


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {"prompt_tokens": -1, "completion_tokens": 3},
        {"prompt_tokens": "nine", "completion_tokens": 3},
        {"prompt_tokens": 10**30, "completion_tokens": 3},
        {"completion_tokens": 3},
        [],
        "12",
        {"prompt_tokens": 9.5, "completion_tokens": 3},
    ],
)
async def test_an_answer_without_sound_usage_is_booked_by_estimate(usage: Any) -> None:
    async with ScriptedServer([whole(usage=usage)]) as server, running_gateway(config(server)) as gateway:
        got = await gateway.chat()
        row = await gateway.row()
    assert got.status == 200
    assert row["estimated"]
    assert 0 < row["prompt_tokens"] < 100
    assert 0 < row["completion_tokens"] < 100
    assert row["cost_nusd"] == row["prompt_tokens"] * 1000 + row["completion_tokens"] * 2000


async def test_a_usage_of_zero_is_zero() -> None:
    usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    async with ScriptedServer([whole(usage=usage)]) as server, running_gateway(config(server)) as gateway:
        got = await gateway.chat()
        row = await gateway.row()
    assert got.headers["x-gateway-cost-usd"] == "0.000000000"
    assert (row["prompt_tokens"], row["completion_tokens"], row["cost_nusd"], row["estimated"]) == (0, 0, 0, False)


async def test_the_row_and_the_metrics_tell_of_the_request() -> None:
    usage = {
        "prompt_tokens": 9,
        "completion_tokens": 3,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    async with ScriptedServer([whole(usage=usage)]) as server, running_gateway(config(server)) as gateway:
        got = await gateway.chat("X-Request-Id: mine-7")
        row = await gateway.row()
        counted = gateway.metric("gateway_requests_total", model="m", status="200")
        tried = gateway.metric("gateway_upstream_attempts_total", target="p1/up1", outcome="ok")
        holds = gateway.services.ledger.open_holds
    assert row["request_id"] == got.headers["x-request-id"] == "mine-7"
    assert (row["endpoint"], row["model"], row["provider"], row["target"]) == (
        "chat_completions",
        "m",
        "p1",
        "p1/up1",
    )
    assert (row["status"], row["error_code"], row["stream"], row["estimated"]) == (200, None, False, False)
    assert (row["prompt_tokens"], row["completion_tokens"]) == (9, 3)
    assert (row["cached_tokens"], row["reasoning_tokens"], row["cost_nusd"]) == (4, 2, 15_000)
    assert row["client_ip"] == "127.0.0.1"
    assert 0 < row["ttft_ms"] <= row["total_ms"]
    assert 0 < row["overhead_ms"] < row["total_ms"]
    (attempt,) = row["attempts"]
    assert (attempt["target"], attempt["failure"], attempt["status"]) == ("p1/up1", None, 200)
    assert (counted, tried, holds) == (1, 1, 0)


async def test_what_the_usage_chunk_says_in_a_folded_stream_is_booked() -> None:
    script = stream(ROLE, *words("Hi"), STOP, usage_chunk({"prompt_tokens": 1, "completion_tokens": 1}), DONE)
    async with ScriptedServer(script) as server, running_gateway(config(server)) as gateway:
        await gateway.chat()
        row = await gateway.row()
    assert (row["prompt_tokens"], row["completion_tokens"], row["estimated"]) == (1, 1, False)
