"""Completions and embeddings take the same road as chat."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

import pytest

from tests.fakes.gateway import SERVERS, config, running_gateway
from tests.fakes.openai_answers import DONE, USAGE, event, payloads, stream
from tests.fakes.scripted_server import Close, RecordedRequest, Script, ScriptedServer, answer, chunk, chunked_head

TEXT = {
    "id": "cmpl-1",
    "object": "text_completion",
    "created": 1,
    "model": "up-real",
    "choices": [{"index": 0, "text": "Hello.", "finish_reason": "stop", "logprobs": None}],
    "usage": USAGE,
}


def text(piece: str, finish: str | None = None) -> bytes:
    return event({**TEXT, "choices": [{"index": 0, "text": piece, "finish_reason": finish}], "usage": None})


USAGE_CHUNK = event({**TEXT, "choices": []})


@pytest.mark.parametrize("path", ["/v1/completions", "/completions", "/openai/v1/completions"])
async def test_a_completion_is_passed_on(path: str) -> None:
    body = json.dumps(TEXT).encode()
    async with ScriptedServer([answer(body)]) as server, running_gateway(config(server)) as gateway:
        got = await gateway.post(path, {"model": "m", "prompt": "Say hello."})
        row = await gateway.row()
    assert (got.status, got.body) == (200, body)
    assert server.requests[0].path == "/v1/completions"
    assert (row["endpoint"], row["prompt_tokens"], row["cost_nusd"]) == ("completions", 9, 15_000)


@pytest.mark.parametrize("prompt", ["a", ["a", "b"], [1, 2], [[1], [2, 3]]])
async def test_a_prompt_may_be_texts_or_tokens(prompt: Any) -> None:
    async with ScriptedServer([answer(json.dumps(TEXT).encode())]) as server, running_gateway(config(server)) as it:
        got = await it.post("/v1/completions", {"model": "m", "prompt": prompt, "max_tokens": 0})
    assert got.status == 200
    assert json.loads(server.requests[0].body)["prompt"] == prompt


@pytest.mark.parametrize("server", SERVERS)
async def test_a_completion_is_streamed(server: str) -> None:
    events = (text("Hel"), text("lo."), text("", "stop"))
    async with (
        ScriptedServer(stream(*events, USAGE_CHUNK, DONE)) as upstream,
        running_gateway(config(upstream), server=server) as gateway,
    ):
        got = await gateway.post("/v1/completions", {"model": "m", "prompt": "x", "stream": True})
        row = await gateway.row()
    assert got.body == b"".join((*events, DONE))
    assert (row["endpoint"], row["stream"], row["prompt_tokens"]) == ("completions", True, 9)


async def test_a_torn_completion_stream_is_an_error_event() -> None:
    script: Script = [chunked_head(), chunk(text("Hel")), Close()]
    async with ScriptedServer(script) as upstream, running_gateway(config(upstream)) as gateway:
        got = await gateway.post("/v1/completions", {"model": "m", "prompt": "x", "stream": True})
    assert payloads(got.body)[-1]["error"]["code"] == "upstream_interrupted"


async def test_a_streamed_completion_can_be_folded_and_a_whole_one_streamed() -> None:
    def other_way_round(sent: RecordedRequest) -> Script:
        streamed = json.loads(sent.body).get("stream")
        return [answer(json.dumps(TEXT).encode())] if streamed else stream(text("Hel"), text("lo.", "stop"), DONE)

    async with ScriptedServer(other_way_round) as upstream, running_gateway(config(upstream)) as gateway:
        whole = await gateway.post("/v1/completions", {"model": "m", "prompt": "x"})
        streamed = await gateway.post("/v1/completions", {"model": "m", "prompt": "x", "stream": True})
    assert whole.json["object"] == "text_completion"
    assert whole.json["choices"] == [{"index": 0, "text": "Hello.", "finish_reason": "stop"}]
    assert [one["choices"][0]["text"] for one in payloads(streamed.body)[:-1]] == ["Hello.", ""]
    assert payloads(streamed.body)[-1] == "[DONE]"


# Embeddings

FLOATS = [0.25, -1.5, 3.0]
BASE64 = base64.b64encode(struct.pack("<3f", *FLOATS)).decode()
EMBEDDING = {
    "object": "list",
    "model": "up-real",
    "data": [{"object": "embedding", "index": 0, "embedding": FLOATS}],
    "usage": {"prompt_tokens": 4, "total_tokens": 4},
}


@pytest.mark.parametrize("path", ["/v1/embeddings", "/embeddings", "/openai/v1/embeddings"])
async def test_embeddings_are_passed_on(path: str) -> None:
    body = json.dumps(EMBEDDING).encode()
    async with ScriptedServer([answer(body)]) as server, running_gateway(config(server)) as gateway:
        got = await gateway.post(path, {"model": "m", "input": "hello"})
        row = await gateway.row()
    assert (got.status, got.body) == (200, body)
    assert server.requests[0].path == "/v1/embeddings"
    assert (row["endpoint"], row["prompt_tokens"], row["completion_tokens"]) == ("embeddings", 4, 0)
    assert row["cost_nusd"] == 4_000


@pytest.mark.parametrize("given", [FLOATS, BASE64])
@pytest.mark.parametrize("wanted", ["float", "base64"])
async def test_embeddings_come_in_the_encoding_that_was_asked_for(given: Any, wanted: str) -> None:
    reply = {**EMBEDDING, "data": [{"object": "embedding", "index": 0, "embedding": given}]}
    async with ScriptedServer([answer(json.dumps(reply).encode())]) as server, running_gateway(config(server)) as it:
        got = await it.post("/v1/embeddings", {"model": "m", "input": ["hello"], "encoding_format": wanted})
    assert got.json["data"][0]["embedding"] == (FLOATS if wanted == "float" else BASE64)


@pytest.mark.parametrize(("given", "count"), [("a", 1), (["a", "b"], 2), ([1, 2], 1), ([[1], [2, 3]], 2)])
async def test_the_input_may_be_texts_or_tokens(given: Any, count: int) -> None:
    reply = {
        **EMBEDDING,
        "data": [{"object": "embedding", "index": place, "embedding": [0.5]} for place in range(count)],
    }
    async with ScriptedServer([answer(json.dumps(reply).encode())]) as server, running_gateway(config(server)) as it:
        got = await it.post("/v1/embeddings", {"model": "m", "input": given})
    assert got.status == 200
    assert json.loads(server.requests[0].body)["input"] == given


async def test_embeddings_without_usage_are_charged_for_their_input_alone() -> None:
    reply = {**EMBEDDING, "data": [{"index": 0, "embedding": [0.123456789] * 2000}], "usage": None}
    async with ScriptedServer([answer(json.dumps(reply).encode())]) as server, running_gateway(config(server)) as it:
        await it.post("/v1/embeddings", {"model": "m", "input": "hello there"})
        row = await it.row()
    assert row["estimated"]
    assert (0 < row["prompt_tokens"] < 20, row["completion_tokens"]) == (True, 0)


@pytest.mark.parametrize(
    "body", [b'{"object":"list"}', b'{"data":5}', b'{"data":null}', b'{"data":[],"error":{"message":"x"}}']
)
async def test_embeddings_without_vectors_are_a_502(body: bytes) -> None:
    async with (
        ScriptedServer([answer(body)]) as server,
        running_gateway(config(server, retries={"attempts": 1})) as gateway,
    ):
        got = await gateway.post("/v1/embeddings", {"model": "m", "input": "hello"})
    assert got.status == 502


async def test_a_target_without_the_endpoint_is_passed_over() -> None:
    async with (
        ScriptedServer([answer(json.dumps(EMBEDDING).encode())]) as one,
        ScriptedServer([answer(json.dumps(EMBEDDING).encode())]) as two,
    ):
        settings = config(one, two)
        settings["providers"]["p1"]["overrides"] = {"endpoints": {"embeddings": {"support": "absent"}}}
        async with running_gateway(settings) as gateway:
            got = await gateway.post("/v1/embeddings", {"model": "m", "input": "hello"})
            row = await gateway.row()
    assert (got.status, got.headers["x-gateway-target"], one.requests) == (200, "p2/up2", [])
    assert row["attempts"][0]["failure"] == "unsupported_parameter"
