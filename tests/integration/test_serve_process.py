"""`gateway serve` from its start to its end, as processes and signals see it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gateway.listening import bind
from gateway.settings import load_settings
from gateway.workers import supervise
from tests.fakes.gateway_process import GatewayProcess, gateway_process, until_ready
from tests.fakes.openai_answers import ROLE, good_stream, payloads, stream, words
from tests.fakes.raw_client import RawClient, post
from tests.fakes.scripted_server import Script, ScriptedServer, Sleep, Step, chunk

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and several workers need POSIX")

# Begins to answer, and would go on for a minute.
_AGAIN: list[Step] = [Sleep(0.2), chunk(words(" again")[0])]
ENDLESS: Script = [*stream(ROLE, *words("Hello"), end=False), *_AGAIN * 300]
SHORT: Script = [*stream(ROLE, *words("Hello"), end=False), Sleep(0.5), *good_stream()[1:]]


def config(upstream: ScriptedServer | None, **server: Any) -> dict[str, Any]:
    address = f"http://127.0.0.1:{upstream.port if upstream else 9}/v1"
    return {
        "version": 1,
        "server": {"port": 0, "drain_timeout": "1s", **server},
        "providers": {"up": {"type": "openai_compatible", "base_url": address, "api_key": "sk-upstream"}},
        "models": {"m": {"targets": [{"provider": "up", "model": "m"}]}},
        "telemetry": {"log_format": "json"},
    }


@pytest.fixture
async def endless() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer(ENDLESS) as server:
        yield server


async def begun(gateway: GatewayProcess) -> RawClient:
    """A client whose stream has begun."""
    client = await gateway.chat()
    status, _ = await client.head()
    assert status == 200
    assert b"assistant" in await client.chunk()
    return client


async def until_refused(gateway: GatewayProcess) -> None:
    """Return once it takes no new connections: so it does when it has heard of a signal."""
    async with asyncio.timeout(15):
        while True:
            try:
                await gateway.connect()
            except ConnectionRefusedError:
                return
            except ConnectionResetError:
                pass
            await asyncio.sleep(0.02)


async def test_the_printed_line_streams_an_answer(tmp_path: Path, workers: int) -> None:
    async with (
        ScriptedServer(good_stream()) as upstream,
        gateway_process(tmp_path, config(upstream, workers=workers)) as gateway,
    ):
        await gateway.until_ready()
        answer = await (await gateway.chat()).answer()
        assert answer.status == 200
        assert answer.body.endswith(b"data: [DONE]\n\n")
        gateway.signal(signal.SIGTERM)
        assert await gateway.ended() == 0
    assert f"OpenAI base URL: http://127.0.0.1:{gateway.port}/v1" in gateway.printed
    assert gateway.curl[:2] == ["curl", "-N"]
    assert "Traceback" not in gateway.errors


async def test_a_second_start_uses_the_same_key(tmp_path: Path) -> None:
    lines = []
    for _ in range(2):
        async with gateway_process(tmp_path, config(None)) as gateway:
            await gateway.until_ready()
            lines.append([word for word in gateway.curl if word.startswith("Authorization: Bearer gw-")])
    assert lines[0] == lines[1] != []


async def test_without_keys_the_printed_line_has_none(tmp_path: Path) -> None:
    async with gateway_process(tmp_path, {**config(None), "auth": {"mode": "open"}}) as gateway:
        await gateway.until_ready()
    assert not any("Authorization" in word for word in gateway.curl)


async def test_ctrl_c_ends_it_without_a_traceback(tmp_path: Path) -> None:
    async with gateway_process(tmp_path, config(None)) as gateway:
        await gateway.until_ready()
        gateway.signal(signal.SIGINT)
        assert await gateway.ended() == 0
    assert "Traceback" not in gateway.errors


async def test_a_second_ctrl_c_ends_it_at_once(tmp_path: Path, workers: int, endless: ScriptedServer) -> None:
    settings = config(endless, workers=workers, drain_timeout="60s")
    async with gateway_process(tmp_path, settings) as gateway:
        await gateway.until_ready()
        await begun(gateway)
        gateway.signal(signal.SIGINT)
        await until_refused(gateway)
        assert gateway.process.returncode is None
        gateway.signal(signal.SIGINT)
        assert await gateway.ended(10) == 130
    assert "Traceback" not in gateway.errors


async def test_sigterm_lets_a_stream_finish(tmp_path: Path, workers: int) -> None:
    async with (
        ScriptedServer(SHORT) as upstream,
        gateway_process(tmp_path, config(upstream, workers=workers, drain_timeout="20s")) as gateway,
    ):
        await gateway.until_ready()
        client = await begun(gateway)
        gateway.signal(signal.SIGTERM)
        assert (await client.rest(10)).endswith(b"data: [DONE]\n\n")
        assert await gateway.ended() == 0


async def test_a_stream_that_outlasts_the_drain_is_told_why_it_ends(
    tmp_path: Path, workers: int, endless: ScriptedServer
) -> None:
    async with gateway_process(tmp_path, config(endless, workers=workers)) as gateway:
        await gateway.until_ready()
        client = await begun(gateway)
        gateway.signal(signal.SIGTERM)
        body = await client.rest(10)
        assert payloads(body)[-1]["error"]["code"] == "shutting_down"
        assert b"[DONE]" not in body
        assert await gateway.ended() == 0
    assert "Traceback" not in gateway.errors


async def test_while_draining_new_connections_are_refused(tmp_path: Path, endless: ScriptedServer) -> None:
    async with gateway_process(tmp_path, config(endless, workers=2, drain_timeout="20s")) as gateway:
        await gateway.until_ready()
        await begun(gateway)
        gateway.signal(signal.SIGTERM)
        await until_refused(gateway)
        assert gateway.process.returncode is None


async def test_a_busy_port_is_a_sentence_with_the_remedy(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        async with gateway_process(tmp_path, config(None), "--port", str(port)) as gateway:
            assert await gateway.ended() == 1
    assert f"port {port} on 127.0.0.1 is in use" in gateway.errors
    assert f"--port {port + 1}" in gateway.errors
    assert "Traceback" not in gateway.errors


async def test_an_address_that_is_not_ours_is_a_sentence(tmp_path: Path) -> None:
    async with gateway_process(tmp_path, config(None), "--host", "192.0.2.1") as gateway:
        assert await gateway.ended() == 1
    assert "this machine has no address 192.0.2.1" in gateway.errors


async def test_a_wrong_configuration_is_exit_code_3(tmp_path: Path) -> None:
    async with gateway_process(tmp_path, {"version": 1, "nonsense": True}) as gateway:
        assert await gateway.ended() == 3
    assert "nonsense" in gateway.errors
    assert "Traceback" not in gateway.errors


async def test_a_database_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    settings = {
        **config(None),
        "storage": {"database_url": "sqlite+aiosqlite:////proc/nowhere/gateway.db"},
    }
    async with gateway_process(tmp_path, settings) as gateway:
        assert await gateway.ended() in (1, 4)
    assert "/proc/nowhere" in gateway.errors
    assert "Traceback" not in gateway.errors


async def test_workers_that_cannot_start_end_the_parent(tmp_path: Path) -> None:
    settings = {**config(None, workers=2), "storage": {"database_url": "sqlite+aiosqlite:////proc/nowhere/gateway.db"}}
    file = tmp_path / "config.yaml"
    file.write_text(json.dumps(settings))
    sock = bind("127.0.0.1", 0)

    code = await asyncio.wait_for(supervise(load_settings(file, environ={}), sock), 60)

    assert code in (1, 4)


async def test_a_worker_that_dies_is_replaced(tmp_path: Path) -> None:
    async with (
        ScriptedServer(good_stream()) as upstream,
        gateway_process(tmp_path, config(upstream, workers=2)) as gateway,
    ):
        await gateway.until_ready()
        before = gateway.children()
        assert len(before) == 2
        os.kill(before[0], signal.SIGKILL)
        async with asyncio.timeout(20):
            while len(gateway.children()) < 2 or before[0] in gateway.children():
                await asyncio.sleep(0.05)
        for _ in range(4):
            assert (await (await gateway.chat()).answer(10)).status == 200
    assert "worker 0 has ended (signal SIGKILL)" in gateway.errors or "worker 1 has ended" in gateway.errors


async def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    async with gateway_process(tmp_path, config(None, workers=2)) as gateway:
        await gateway.until_ready()
        children = gateway.children()
        gateway.signal(signal.SIGKILL)
        await gateway.ended()
        async with asyncio.timeout(10):
            while any(Path(f"/proc/{pid}/cmdline").exists() and _runs_gateway(pid) for pid in children):
                await asyncio.sleep(0.05)


def _runs_gateway(pid: int) -> bool:
    try:
        return b"gateway" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


async def test_every_worker_answers_hot_and_other_routes(tmp_path: Path) -> None:
    async with gateway_process(tmp_path, config(None, workers=2)) as gateway:
        await gateway.until_ready()
        for _ in range(4):
            client = await gateway.connect()
            await client.send(b"GET /health/ready HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await client.answer(10)).status == 200
            await client.send(post("/v1/chat/completions", b"{}"))
            assert (await client.answer(10)).status == 401


@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
async def test_it_goes_on_when_nobody_reads_its_output(
    tmp_path: Path, unbuffered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    with bind("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    async with gateway_process(tmp_path, config(None), "--port", str(port)) as gateway:
        pipe = gateway.process._transport.get_pipe_transport(1)  # type: ignore[attr-defined]  # asyncio offers no other way
        pipe.close()
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
            await until_ready(client, gateway.process)
            for _ in range(20):  # the lines are written soon after it is ready
                assert (await client.get("/health/live")).status_code == 200
                await asyncio.sleep(0.05)
        gateway.signal(signal.SIGTERM)
        assert await gateway.ended() == 0
    assert "Traceback" not in gateway.errors
