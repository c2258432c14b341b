"""One of many fine-tunes is asked for, allowed, refused, recorded and listed under its own name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes.gateway import KEY, provider, running_gateway
from tests.fakes.openai_answers import good_stream, refusal, whole
from tests.fakes.scripted_server import ScriptedServer

NAME = "support-fine-tunes/acme"
PATTERN = "support-fine-tunes/*"


def settings(*servers: ScriptedServer, **more: Any) -> dict[str, Any]:
    providers = {f"p{number}": provider(server, type="vllm") for number, server in enumerate(servers, 1)}
    targets = [{"provider": name, "model": "{adapter}", "base": "qwen3-8b"} for name in providers]
    return {
        "providers": providers,
        "models": {PATTERN: {"targets": targets}, "m": {"targets": [{"provider": "p1", "model": "up1"}]}},
        "aliases": {"acme": NAME},
        **more,
    }


@pytest.mark.parametrize("asked", [NAME, "acme"])
async def test_it_is_sent_for_and_recorded_by_its_name_but_counted_by_its_pattern(asked: str) -> None:
    async with ScriptedServer([whole()]) as server, running_gateway(settings(server)) as gateway:
        got = await gateway.chat(model=asked)
        row = await gateway.row()
        counted = gateway.metric("gateway_requests_total", model=PATTERN)

    assert got.status == 200
    assert json.loads(server.requests[0].body)["model"] == "acme"
    assert got.headers["x-gateway-model"] == NAME
    assert got.headers["x-gateway-target"] == "p1/qwen3-8b"
    assert (row["model"], row["target"]) == (NAME, "p1/qwen3-8b")
    assert counted == 1


async def test_no_name_a_client_makes_up_becomes_a_series() -> None:
    async with ScriptedServer([whole()]) as server, running_gateway(settings(server)) as gateway:
        for number in range(5):
            await gateway.chat(model=f"support-fine-tunes/made-up-{number}")
        text = gateway.services.metrics.render()

    assert len(server.requests) == 5
    assert b"made-up" not in text


async def test_a_stream_says_its_name_too() -> None:
    async with ScriptedServer(good_stream()) as server, running_gateway(settings(server)) as gateway:
        got = await gateway.chat(model=NAME, stream=True)

    assert (got.status, got.headers["x-gateway-model"]) == (200, NAME)


async def test_answers_carry_its_name_where_they_carry_the_models() -> None:
    async with (
        ScriptedServer([whole()]) as server,
        running_gateway(settings(server, response_model="alias")) as gateway,
    ):
        got = await gateway.chat(model=NAME)

    assert got.json["model"] == NAME


async def test_a_key_for_one_fine_tune_opens_no_other() -> None:
    async with ScriptedServer([whole()]) as server, running_gateway(settings(server), models=[NAME]) as gateway:
        mine, other = await gateway.chat(model=NAME), await gateway.chat(model="support-fine-tunes/zen")
        odd = await gateway.chat(model="support-fine-tunes/../zen")

    assert (mine.status, other.status, odd.status) == (200, 403, 404)
    assert len(server.requests) == 1


async def test_an_unknown_one_is_a_404_that_names_the_base_and_the_pattern_and_harms_no_target() -> None:
    async with (
        ScriptedServer([refusal(404, "The model `acme` does not exist.")]) as first,
        ScriptedServer([refusal(404, "The model `acme` does not exist.")]) as second,
        running_gateway(settings(first, second)) as gateway,
    ):
        got = await gateway.chat(model=NAME)

    assert (got.status, got.error["code"], got.error["param"]) == (404, "model_not_found", "model")
    assert "qwen3-8b" in got.error["message"]
    assert PATTERN in got.error["message"]
    assert (len(first.requests), len(second.requests)) == (1, 1), "another server may have it"


async def test_a_name_that_could_be_none_is_a_404_that_says_so() -> None:
    async with ScriptedServer([whole()]) as server, running_gateway(settings(server)) as gateway:
        got = await gateway.chat(model="support-fine-tunes/a b")

    assert (got.status, got.error["code"]) == (404, "model_not_found")
    assert "qwen3-8b" in got.error["message"]
    assert PATTERN in got.error["message"]
    assert not server.requests


async def test_one_is_described_under_its_own_name_and_one_of_no_name_is_not() -> None:
    described = {}
    async with ScriptedServer([whole()]) as server, running_gateway(settings(server), models=[NAME]) as gateway:
        for name in (NAME, "support-fine-tunes/zen", "support-fine-tunes/..", PATTERN):
            client = await gateway.connect()
            await client.send(f"GET /v1/models/{name} HTTP/1.1\r\nHost: g\r\nx-api-key: {KEY}\r\n\r\n".encode())
            described[name] = await client.answer()

    assert [answer.status for answer in described.values()] == [200, 404, 404, 404]
    assert described[NAME].json["id"] == NAME


async def test_the_list_shows_the_pattern_to_those_who_may_use_it_and_to_others_their_own() -> None:
    listed = {}
    async with ScriptedServer([whole()]) as server:
        for models in (None, [PATTERN], [NAME, "m"], ["m"]):
            async with running_gateway(settings(server), models=models) as gateway:
                client = await gateway.connect()
                await client.send(f"GET /v1/models HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer {KEY}\r\n\r\n".encode())
                listed[str(models)] = {entry["id"]: entry for entry in (await client.answer()).json["data"]}

    assert [sorted(entries) for entries in listed.values()] == [
        ["acme", "m", PATTERN],
        ["acme", PATTERN],
        ["acme", "m", NAME],
        ["m"],
    ]
    assert "Fine-tunes of qwen3-8b" in listed["None"][PATTERN]["description"]
