"""Shorter vectors from a provider that does not tell whether it makes them: tried, and looked at."""

from __future__ import annotations

import json

import pytest

from tests.fakes.gateway import config, running_gateway
from tests.fakes.scripted_server import ScriptedServer, answer

UNSURE = {"endpoints": {"embeddings": {"path": "/embeddings", "support": "native", "unsure": ["dimensions"]}}}


@pytest.mark.parametrize(("length", "status"), [(2, 200), (3, 400)])
@pytest.mark.parametrize("encoding", ["float", "base64"])
async def test_vectors_of_another_length_than_asked_for_are_no_answer(length: int, status: int, encoding: str) -> None:
    vectors = {"data": [{"embedding": [0.5] * length}] * 2, "usage": {"prompt_tokens": 2, "total_tokens": 2}}
    async with ScriptedServer([answer(json.dumps(vectors).encode())]) as server:
        settings = config(server)
        settings["models"]["m"]["targets"][0]["overrides"] = UNSURE
        async with running_gateway(settings) as gateway:
            asked = {"model": "m", "input": ["a", "b"], "dimensions": 2, "encoding_format": encoding}
            got = await gateway.post("/v1/embeddings", asked)

    assert json.loads(server.requests[0].body)["dimensions"] == 2
    assert got.status == status
    if status == 400:
        error = json.loads(got.body)["error"]
        assert (error["code"], error["param"]) == ("unsupported_parameter", "dimensions")
        assert "Its vectors have 3 numbers" in error["message"]
