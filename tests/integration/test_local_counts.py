"""Tokens of answers by the local engine that break off: counted by its tokenizer, not guessed from bytes."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from local_engine import probe
from local_engine.engine import LocalEngine
from tests.fakes.gateway import RunningGateway, chat_body, request, running_gateway
from tests.fakes.gguf_files import write_decoder

CHAT = "/v1/chat/completions"
TEXT = "häßlich, 日本語: " * 3
"""More tokens than the rule of thumb makes of its bytes."""


def settings(**options: Any) -> dict[str, Any]:
    """The default model, unless *options* name another: one that takes seconds for a long answer."""
    return {
        "providers": {"local": {"type": "local", "context": 1024, "slots": 2, **options}},
        "models": {"m": {"targets": [{"provider": "local", "price": {"input": 1, "output": 2}}]}},
    }


def asked(**more: Any) -> dict[str, Any]:
    return chat_body(messages=[{"role": "user", "content": TEXT}], ignore_eos=True, temperature=0, **more)


async def until_busy(engine: LocalEngine) -> None:
    """Return when the engine is at work on an answer."""
    async with asyncio.timeout(60):
        while not any(slot["is_processing"] for slot in await probe.slots(engine.address)):
            await asyncio.sleep(0.01)


def engine_of(gateway: RunningGateway) -> LocalEngine:
    (engine,) = gateway.services.backends._engines.values()
    assert isinstance(engine, LocalEngine)
    return engine


async def exact(gateway: RunningGateway) -> int:
    """The prompt's tokens, as the engine counts them."""
    counted = await probe.ask(engine_of(gateway).address, CHAT + "/input_tokens", asked())
    return int(counted["input_tokens"])


@pytest.mark.usefixtures("model_file")
@pytest.mark.parametrize("ending", ["the client leaves", "the engine dies"])
async def test_a_stream_that_breaks_off_costs_what_the_engine_has_counted(ending: str) -> None:
    async with running_gateway(settings()) as gateway:
        await engine_of(gateway).wait_ready(60)
        prompt = await exact(gateway)
        client = await gateway.connect()
        await client.send(request(CHAT, asked(stream=True, max_tokens=900)))
        assert (await client.head())[0] == 200
        seen = await client.chunk()
        if ending == "the client leaves":
            client.reset()
        else:
            pid = engine_of(gateway).pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
        row = await gateway.row()

    assert b'"timings"' not in seen
    assert (row["prompt_tokens"], row["estimated"]) == (prompt, False)
    assert 1 <= row["completion_tokens"] < 900
    assert row["cost_nusd"] == row["prompt_tokens"] * 1000 + row["completion_tokens"] * 2000


@pytest.mark.usefixtures("model_file")
async def test_a_plain_answer_nobody_waits_for_costs_what_the_engine_has_counted() -> None:
    async with running_gateway(settings()) as gateway:
        await engine_of(gateway).wait_ready(60)
        prompt = await exact(gateway)
        client = await gateway.connect()
        await client.send(request(CHAT, asked(max_tokens=900)))
        await until_busy(engine_of(gateway))
        await asyncio.sleep(1)
        client.reset()
        row = await gateway.row()

    assert (row["prompt_tokens"], row["estimated"]) == (prompt, False)
    assert row["completion_tokens"] < 900


async def test_the_window_is_counted_by_the_models_own_tokenizer(tmp_path: Path) -> None:
    # Of the tiny model a byte is a token.
    path = str(write_decoder(tmp_path / "d.gguf"))
    async with running_gateway(settings(model_path=path, context=256, threads=1)) as gateway:
        await engine_of(gateway).wait_ready(60)

        async def ask(length: int) -> Any:
            body = chat_body(messages=[{"role": "user", "content": "x" * length}], max_tokens=1)
            return await gateway.post(CHAT, body, timeout=30)

        around = int((await probe.ask(engine_of(gateway).address, CHAT + "/input_tokens", chat_body(
            messages=[{"role": "user", "content": ""}])))["input_tokens"])  # fmt: skip
        fits, over = await ask(255 - around), await ask(256 - around)

    assert fits.status == 200, fits.body
    assert fits.json["usage"]["prompt_tokens"] == 255
    assert over.status == 400
    assert over.json["error"]["code"] == "context_length_exceeded"
    assert "256" in over.json["error"]["message"]
