"""`gateway serve` with the local model, as somebody who has just installed it runs it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.gateway_process import GatewayProcess, gateway_process
from tests.fakes.raw_client import RawClient, post

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")


def config(**server: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "server": {"port": 0, **server},
        "providers": {"local": {"type": "local", "context": 1024, "slots": 1}},
        "models": {"small": {"targets": [{"provider": "local"}]}},
        "telemetry": {"log_format": "json"},
    }


async def ask(gateway: GatewayProcess, max_tokens: int) -> RawClient:
    """A client that has asked for a stream of exactly *max_tokens*: the model may not end its turn by itself."""
    key = next(word for word in gateway.curl if word.startswith("Authorization"))
    body = {"model": "small", "messages": [{"role": "user", "content": "Tell a story."}], "stream": True}
    body |= {"temperature": 0, "max_tokens": max_tokens, "logit_bias": {"2": -100}}
    async with asyncio.timeout(60):
        while True:
            client = await gateway.connect()
            await client.send(post("/v1/chat/completions", json.dumps(body).encode(), key))
            status, _ = await client.head()
            if status == 200:
                return client
            # An engine that was killed is started again, which takes a busy machine longer than a request waits.
            assert status == 503
            await client.close()
            await asyncio.sleep(0.1)


def engines_below(process_id: int) -> list[int]:
    """The engines among the processes a process has started."""
    children = Path(f"/proc/{process_id}/task/{process_id}/children").read_text().split()
    return [int(child) for child in children if b"local_engine.child" in Path(f"/proc/{child}/cmdline").read_bytes()]


def is_running(process_id: int) -> bool:
    """False too for what has ended but was not yet collected by whoever inherited it."""
    command = Path(f"/proc/{process_id}/cmdline")
    return command.exists() and command.read_bytes() != b""


@pytest.mark.parametrize("workers", [1, 2], ids=["one-process", "two-workers"])
async def test_one_engine_answers_for_all_workers_and_a_stream_may_end_after_sigterm(
    tmp_path: Path, model_file: Path, workers: int
) -> None:
    async with gateway_process(tmp_path, config(workers=workers)) as gateway:
        await gateway.until_ready()
        engines = engines_below(gateway.process.pid)
        client = await ask(gateway, max_tokens=60)
        gateway.signal(signal.SIGTERM)
        body = await client.rest(60)
        assert await gateway.ended() == 0

    assert len(engines) == 1
    assert body.endswith(b"data: [DONE]\n\n")
    assert body.count(b'"content":') >= 30
    assert "Traceback" not in gateway.errors
    assert not is_running(engines[0])


async def test_a_stream_whose_engine_is_killed_ends_with_an_error_and_the_next_one_is_answered(
    tmp_path: Path, model_file: Path
) -> None:
    async with gateway_process(tmp_path, config()) as gateway:
        await gateway.until_ready()
        client = await ask(gateway, max_tokens=800)
        assert b"data: " in await client.chunk()
        os.kill(engines_below(gateway.process.pid)[0], signal.SIGKILL)
        broken = await client.rest(60)
        whole = await (await ask(gateway, max_tokens=5)).rest(60)

    assert b'"code":"upstream_interrupted"' in broken
    assert b"[DONE]" not in broken
    assert whole.endswith(b"data: [DONE]\n\n")


async def test_no_engine_outlives_a_killed_gateway(tmp_path: Path, model_file: Path) -> None:
    async with gateway_process(tmp_path, config(workers=2)) as gateway:
        await gateway.until_ready()
        engine = engines_below(gateway.process.pid)[0]
        gateway.signal(signal.SIGKILL)
        async with asyncio.timeout(10):
            while is_running(engine):
                await asyncio.sleep(0.05)
