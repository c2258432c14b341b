"""Reports about lists of models, vectors, and what a request costs."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

import pytest

from tests.fakes.gateway import CHAT, KEY, RunningGateway, chat_body, config, request, running_gateway
from tests.fakes.openai_answers import DONE, ROLE, STOP, stream, usage_chunk, words
from tests.fakes.raw_client import Answer
from tests.fakes.scripted_server import Hang, Script, ScriptedServer
from tests.fakes.scripted_server import answer as wire_answer
from tests.reports.field import Json, heard, hello, in_front_of, saying

FLOATS = [0.5, -0.25, 1.0]
AS_BASE64 = base64.b64encode(struct.pack("<3f", *FLOATS)).decode()


def vectors(embedding: Any) -> list[bytes]:
    """An upstream's answer with one vector, in either encoding."""
    data = [{"object": "embedding", "index": 0, "embedding": embedding}]
    usage = {"prompt_tokens": 3, "total_tokens": 3}
    return [wire_answer(json.dumps({"object": "list", "model": "bge", "data": data, "usage": usage}).encode())]


async def get(gateway: RunningGateway, path: str) -> Answer:
    client = await gateway.connect()
    await client.send(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n\r\n".encode())
    return await client.answer()


VECTORS: list[Any] = [
    pytest.param({"encoding_format": "base64"}, FLOATS, AS_BASE64,
                 id="lmstudio-ai/lmstudio-bug-tracker#756, mudler/LocalAI#9135"),
    pytest.param({"encoding_format": "float"}, AS_BASE64, FLOATS, id="vllm-project/vllm#6744"),
    pytest.param({}, FLOATS, FLOATS, id="openai/openai-python#1490"),
    pytest.param({}, AS_BASE64, FLOATS, id="infiniflow/ragflow#9838"),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "came", "told"), VECTORS)
async def test_vectors_come_in_the_encoding_that_was_asked_for(asked: Json, came: Any, told: Any) -> None:
    async with in_front_of(vectors(came)) as field:
        answer = await field.gateway.post("/v1/embeddings", {"model": "m", "input": ["hello"], **asked})

    assert answer.status == 200, answer.body
    assert answer.json["data"][0]["embedding"] == told


LACKING: list[Any] = [
    # What came, and what the client is told of it.
    pytest.param([], "0 vectors for 2 inputs", id="mem0ai/mem0#4057"),
    pytest.param([{"index": 0, "embedding": [1.0]}], "1 vector for 2 inputs", id="fewer than asked for"),
    pytest.param([{"embedding": [1.0]}, {"embedding": None}], "a vector that is null", id="null"),
]


@pytest.mark.parametrize(("data", "told"), LACKING)
async def test_an_answer_without_a_vector_for_each_input_is_none(data: Any, told: str) -> None:
    script = [wire_answer(json.dumps({"object": "list", "data": data}).encode())]
    async with in_front_of(lambda _: script) as field:
        answer = await field.gateway.post("/v1/embeddings", {"model": "m", "input": ["a", "b"]})

    assert answer.status == 502
    assert told in answer.error["message"]


async def test_vectors_come_in_the_order_of_their_inputs() -> None:
    """mgerasolo/knowledge#141: places that were mixed up, or made no sense."""
    data = [{"index": 1, "embedding": [2.0]}, {"index": 0, "embedding": [1.0]}]
    script = [wire_answer(json.dumps({"object": "list", "data": data}).encode())]
    async with in_front_of(lambda _: script) as field:
        answer = await field.gateway.post("/v1/embeddings", {"model": "m", "input": ["a", "b"]})

    assert [(one["index"], one["embedding"]) for one in answer.json["data"]] == [(0, [1.0]), (1, [2.0])]


async def test_the_list_holds_public_models_alone_and_needs_no_upstream() -> None:
    """BerriAI/litellm#25550"""
    settings = config(9, 9)
    settings["models"]["m"]["targets"][1]["model"] = "hidden-backup-id"
    async with running_gateway(settings) as gateway:
        answer = await get(gateway, "/v1/models")

    assert answer.json["object"] == "list"
    (entry,) = answer.json["data"]
    assert (entry["id"], entry["object"]) == ("m", "model")
    assert isinstance(entry["created"], int)
    assert isinstance(entry["owned_by"], str)


async def test_a_key_sees_the_models_it_may_use_and_no_others() -> None:
    """BerriAI/litellm#31966"""
    settings = config(9)
    settings["models"]["dear"] = settings["models"]["m"]
    async with running_gateway(settings, models=["m"]) as gateway:
        listed = await get(gateway, "/v1/models")
        refused = await get(gateway, "/v1/models/dear")

    assert [entry["id"] for entry in listed.json["data"]] == ["m"]
    assert refused.status == 404


async def test_one_model_is_found_though_its_name_has_slashes() -> None:
    """onyx-dot-app/onyx#10573"""
    settings = config(9)
    name = "meta-llama/Llama-3.3-70B-Instruct-Turbo"
    settings["models"][name] = settings["models"].pop("m")
    async with running_gateway(settings) as gateway:
        answer = await get(gateway, f"/v1/models/{name}")

    assert (answer.status, answer.json["id"], answer.json["object"]) == (200, name, "model")


COUNTS: Json = {"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010}
CACHED: list[Any] = [
    pytest.param({"prompt_tokens_details": {"cached_tokens": 900}}, id="BerriAI/litellm#31714"),
    pytest.param({"prompt_cache_hit_tokens": 900, "prompt_cache_miss_tokens": 100},
                 id="NousResearch/hermes-agent#61871"),
    pytest.param({"cached_tokens": 900, "prompt_tokens_details": None}, id="diegosouzapw/OmniRoute#9750"),
    pytest.param({"cached_tokens": 900, "prompt_tokens_details": {"cached_tokens": 900}}, id="told twice"),
]  # fmt: skip


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("told", CACHED)
async def test_cached_tokens_are_charged_once_at_their_own_price(told: Json, streamed: bool) -> None:
    usage = {**COUNTS, **told}
    script: Script = [saying({"content": "hello"}, usage=usage)]
    if streamed:
        script = stream(ROLE, *words("hello"), STOP, usage_chunk(usage), DONE)
    async with ScriptedServer(script) as server:
        settings = config(server)
        settings["models"]["m"]["targets"][0]["price"] = {"input": 1, "output": 2, "cached_input": 0.1}
        async with running_gateway(settings) as gateway:
            await gateway.chat(stream=streamed)
            row = await gateway.row()

    assert row["cost_nusd"] == 100 * 1000 + 900 * 100 + 10 * 2000


NOTHING: Json = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
PLACES: list[Any] = [
    pytest.param([STOP, usage_chunk(COUNTS, [{"index": 0, "delta": {}}])], id="BerriAI/litellm#36168"),
    pytest.param([usage_chunk(NOTHING), STOP, usage_chunk(COUNTS)], id="router-for-me/CLIProxyAPI#3104"),
    pytest.param([STOP, usage_chunk(COUNTS), usage_chunk(NOTHING)], id="router-for-me/CLIProxyAPI#3104 (after it)"),
    pytest.param([usage_chunk(None), STOP, usage_chunk(COUNTS), usage_chunk(None)],
                 id="router-for-me/CLIProxyAPI#2762"),
    pytest.param([STOP, usage_chunk({name: float(count) for name, count in COUNTS.items()})], id="counts as floats"),
    pytest.param([STOP, usage_chunk({name: str(count) for name, count in COUNTS.items()})], id="counts as strings"),
]  # fmt: skip


@pytest.mark.parametrize("events", PLACES)
async def test_the_figures_of_a_stream_are_booked_wherever_they_stand(events: list[bytes]) -> None:
    async with in_front_of(stream(ROLE, *words("hello"), *events, DONE)) as field:
        answer = await field.ask(stream=True, stream_options={"include_usage": True})
        row = await field.gateway.row()

    assert (row["prompt_tokens"], row["completion_tokens"]) == (1000, 10)
    (told,) = heard(answer).usages
    assert int(told["total_tokens"]) == 1010


async def test_a_usage_of_zero_is_taken_as_zero() -> None:
    """BerriAI/litellm#37992"""
    nothing = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    async with in_front_of([saying({"content": "hello"}, usage=nothing)]) as field:
        answer = await field.ask()
        row = await field.gateway.row()

    assert answer.json["usage"]["total_tokens"] == 0
    assert row["cost_nusd"] == 0


async def test_leaving_early_does_not_make_a_stream_free() -> None:
    """QuantumNous/new-api#4463"""
    script = [*stream(ROLE, *words(*["word "] * 20), end=False), Hang()]
    async with in_front_of(script) as field:
        client = await field.gateway.connect()
        await client.send(request(CHAT, chat_body(stream=True)))
        await client.reader.readuntil(b"word")
        await client.close()
        row = await field.gateway.row()

    assert row["cost_nusd"] > 0


async def test_a_stream_without_usage_is_counted_by_what_it_said() -> None:
    """inference-gateway/inference-gateway#207: some streams tell none, whatever is asked."""
    async with in_front_of(stream(ROLE, *words("word " * 20), STOP, DONE)) as field:
        await field.ask(stream=True)
        row = await field.gateway.row()

    assert row["completion_tokens"] > 5
    assert row["cost_nusd"] > 0


async def test_a_request_of_several_megabytes_passes_whole() -> None:
    """api7/aisix#24"""
    text = "x" * 3_000_000
    async with in_front_of(hello) as field:
        answer = await field.ask(messages=[{"role": "user", "content": text}])

        assert answer.status == 200
        assert field.sent[0]["messages"][0]["content"] == text


USAGES: list[Any] = [
    pytest.param({"prompt_tokens": 7180, "total_tokens": 7193}, 13, id="modelscope/evalscope#1432"),
    pytest.param({"prompt_tokens": 9, "completion_tokens": 3}, 3, id="BerriAI/litellm#13697"),
    pytest.param({"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12,
                  "prompt_tokens_details": {"cached_tokens": None}, "completion_tokens_details": None}, 3,
                 id="typedef-ai/fenic#380"),
]  # fmt: skip


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(("usage", "written"), USAGES)
async def test_a_usage_with_gaps_is_completed_and_booked(usage: Json, written: int, streamed: bool) -> None:
    script: Script = [saying({"content": "hello"}, usage=usage)]
    if streamed:
        script = stream(ROLE, *words("hello"), STOP, usage_chunk(usage), DONE)
    async with in_front_of(script) as field:
        answer = await field.ask(stream=streamed, stream_options={"include_usage": True} if streamed else None)
        row = await field.gateway.row()

    told = heard(answer).usages[0] if streamed else answer.json["usage"]
    assert told["completion_tokens"] == row["completion_tokens"] == written
    assert told["total_tokens"] == told["prompt_tokens"] + written
