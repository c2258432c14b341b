"""A prompt that a target would cut in silence is not sent there: a larger window takes it, or the client is told."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.gateway import config, provider, running_gateway
from tests.fakes.openai_answers import whole
from tests.fakes.scripted_server import ScriptedServer

LONG = [{"role": "user", "content": "word " * 3500}]


def settings(*servers: ScriptedServer, windows: tuple[int | None, ...]) -> dict[str, Any]:
    made = config(*servers)
    for target, window in zip(made["models"]["m"]["targets"], windows, strict=True):
        if window is not None:
            target["context_window"] = window
    made["providers"]["p1"] = provider(servers[0], type="ollama")
    return made


@pytest.mark.parametrize("stream", [False, True])
async def test_without_a_larger_window_the_client_is_told_both_numbers_and_owes_nothing(stream: bool) -> None:
    async with ScriptedServer([whole()]) as server, running_gateway(settings(server, windows=(2048,))) as gateway:
        got = await gateway.chat(messages=LONG, stream=stream)
        row = await gateway.row()

    assert (got.status, got.error["code"], got.error["param"]) == (400, "context_length_exceeded", "messages")
    assert "2048" in got.error["message"]
    assert "3500" in got.error["message"]
    assert got.error["provider"] == "p1"
    assert "upstream_status" not in got.error, "nothing was sent"
    assert not row["cost_nusd"]
    assert not server.requests


async def test_a_larger_window_of_the_same_model_answers_instead() -> None:
    async with (
        ScriptedServer([whole()]) as small,
        ScriptedServer([whole()]) as large,
        running_gateway(settings(small, large, windows=(2048, 131072))) as gateway,
    ):
        got = await gateway.chat(messages=LONG)

    assert (got.status, got.headers["x-gateway-target"]) == (200, "p2/up2")
    assert (len(small.requests), len(large.requests)) == (0, 1)


@pytest.mark.parametrize("window", [4096, None])
async def test_what_may_fit_is_sent(window: int | None) -> None:
    async with ScriptedServer([whole()]) as server, running_gateway(settings(server, windows=(window,))) as gateway:
        got = await gateway.chat(messages=LONG)

    assert (got.status, len(server.requests)) == (200, 1)
