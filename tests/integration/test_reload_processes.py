"""Reloads of a running `gateway serve`: signals, a watched file, and workers that all take a file over, or none."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.gateway_process import ROOT, GatewayProcess, gateway_process
from tests.fakes.openai_answers import ROLE, good_stream, stream, text_of, words
from tests.fakes.raw_client import Answer, post
from tests.fakes.scripted_server import Script, ScriptedServer, Sleep

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and several workers need POSIX")

ADMIN_KEY = "admin-key-0123456789"
ADMIN = f"x-api-key: {ADMIN_KEY}"
SLOW: Script = [*stream(ROLE, *words("old"), end=False), Sleep(1.5), *good_stream("er")[1:]]


def config(upstream: ScriptedServer, workers: int = 1, **sections: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "server": {"port": 0, "workers": workers, "drain_timeout": "5s"},
        "auth": {"mode": "open", "admin_key": ADMIN_KEY},
        "providers": {
            "up": {
                "type": "openai_compatible",
                "base_url": f"http://127.0.0.1:{upstream.port}/v1",
                "api_key": "sk-upstream",
            }
        },
        "models": {"m": {"targets": [{"provider": "up", "model": "m"}]}},
        "telemetry": {"log_format": "json"},
        **sections,
    }


@pytest.fixture
async def one() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer(good_stream("one")) as server:
        yield server


@pytest.fixture
async def two() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer(good_stream("two")) as server:
        yield server


async def said(gateway: GatewayProcess) -> str:
    """What the model says, over a connection of its own, that any worker may get."""
    client = await gateway.chat()
    try:
        answer = await client.answer(10)
    finally:
        await client.close()
    assert answer.status == 200, answer.body
    return text_of(answer.body)


async def until_all_say(gateway: GatewayProcess, text: str) -> None:
    """Return once twenty answers in a row say *text*: by then every worker has been asked."""
    async with asyncio.timeout(20):
        in_a_row = 0
        while in_a_row < 20:
            in_a_row = in_a_row + 1 if await said(gateway) == text else 0


async def reload(gateway: GatewayProcess) -> Answer:
    client = await gateway.connect()
    await client.send(post("/admin/reload", b"", ADMIN))
    return await client.answer(20)


async def reload_ok(gateway: GatewayProcess) -> float:
    """The gauge, as whichever worker is asked tells it."""
    client = await gateway.connect()
    await client.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
    text = (await client.answer(10)).body.decode()
    return float(next(line.split()[1] for line in text.splitlines() if line.startswith("gateway_config_reload_ok ")))


async def until_reload_ok(gateway: GatewayProcess, value: float) -> None:
    async with asyncio.timeout(20):
        while await reload_ok(gateway) != value:
            await asyncio.sleep(0.05)


def write(folder: Path, content: dict[str, Any] | str) -> None:
    (folder / "config.yaml").write_text(content if isinstance(content, str) else json.dumps(content))


async def test_sighup_reloads_every_worker(
    tmp_path: Path, workers: int, one: ScriptedServer, two: ScriptedServer
) -> None:
    async with gateway_process(tmp_path, config(one, workers), "--no-reload") as gateway:
        await gateway.until_ready()
        assert await said(gateway) == "one"
        write(tmp_path, config(two, workers))
        gateway.signal(signal.SIGHUP)
        await until_all_say(gateway, "two")
        gateway.signal(signal.SIGTERM)
        assert await gateway.ended() == 0
    assert gateway.errors.count("a new configuration is in force") == 1
    assert "Traceback" not in gateway.errors


async def test_a_request_to_one_worker_reloads_them_all_before_it_is_answered(
    tmp_path: Path, workers: int, one: ScriptedServer, two: ScriptedServer
) -> None:
    async with gateway_process(tmp_path, config(one, workers), "--no-reload") as gateway:
        await gateway.until_ready()
        write(tmp_path, config(two, workers))

        answer = await reload(gateway)

        assert (answer.status, answer.json["changed"][0]["path"]) == (200, "providers.up.base_url")
        assert {await said(gateway) for _ in range(20)} == {"two"}


async def test_a_changed_file_is_followed_unless_it_is_not_to_be(
    tmp_path: Path, workers: int, one: ScriptedServer, two: ScriptedServer
) -> None:
    async with gateway_process(tmp_path, config(one, workers)) as gateway:
        await gateway.until_ready()
        write(tmp_path, config(two, workers))
        await until_all_say(gateway, "two")
    async with gateway_process(tmp_path, config(one, workers), "--no-reload") as gateway:
        await gateway.until_ready()
        write(tmp_path, config(two, workers))
        await asyncio.sleep(1)
        assert await said(gateway) == "one"


async def test_a_wrong_file_is_told_by_every_worker_and_used_by_none(
    tmp_path: Path, workers: int, one: ScriptedServer, two: ScriptedServer
) -> None:
    wrong = json.dumps(config(one, workers), indent=1).replace('"openai_compatible"', '"sk-secret-0123456789"')
    async with gateway_process(tmp_path, config(one, workers), "--no-reload") as gateway:
        await gateway.until_ready()
        assert await reload_ok(gateway) == 1
        write(tmp_path, wrong)

        answer = await reload(gateway)

        assert (answer.status, answer.error["code"]) == (400, "invalid_configuration")
        assert answer.error["problems"][0]["path"] == "providers.up.type"
        for _ in range(6):
            await until_reload_ok(gateway, 0)
        assert await said(gateway) == "one"
        write(tmp_path, config(two, workers))
        assert (await reload(gateway)).status == 200
        for _ in range(6):
            await until_reload_ok(gateway, 1)
        assert await said(gateway) == "two"
        gateway.signal(signal.SIGTERM)
        assert await gateway.ended() == 0
    assert gateway.errors.count("the new configuration is wrong") == 1
    assert "config.yaml:" in gateway.errors


async def test_what_one_worker_cannot_build_no_worker_uses(tmp_path: Path, one: ScriptedServer) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    content = config(one, 2)
    content["providers"]["tls"] = {"type": "openai_compatible", "base_url": "https://127.0.0.1:9", "ca_file": "ca.pem"}
    async with gateway_process(tmp_path, config(one, 2), "--no-reload") as gateway:
        await gateway.until_ready()
        write(tmp_path, content)

        assert (await reload(gateway)).status == 400
        assert {await said(gateway) for _ in range(10)} == {"one"}
        write(tmp_path, config(one, 2, aliases={"a": "m"}))
        assert (await reload(gateway)).status == 200


async def test_a_worker_that_is_replaced_has_the_configuration_in_force(
    tmp_path: Path, one: ScriptedServer, two: ScriptedServer
) -> None:
    async with gateway_process(tmp_path, config(one, 2), "--no-reload") as gateway:
        await gateway.until_ready()
        write(tmp_path, config(two, 2))
        assert (await reload(gateway)).status == 200
        write(tmp_path, "wrong")
        assert (await reload(gateway)).status == 400
        before = gateway.children()
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        await replaced(gateway, before)

        await until_all_say(gateway, "two")
        await until_reload_ok(gateway, 0)


async def replaced(gateway: GatewayProcess, before: list[int]) -> None:
    async with asyncio.timeout(30):
        while len(gateway.children()) < len(before) or set(before) & set(gateway.children()):
            await asyncio.sleep(0.05)
        while True:
            try:
                await said(gateway)
                return
            except (ConnectionError, asyncio.IncompleteReadError):
                await asyncio.sleep(0.05)


async def test_a_stream_under_way_ends_as_it_began(tmp_path: Path, workers: int, two: ScriptedServer) -> None:
    async with (
        ScriptedServer(SLOW) as slow,
        gateway_process(tmp_path, config(slow, workers), "--no-reload") as gateway,
    ):
        await gateway.until_ready()
        client = await gateway.chat()
        assert (await client.head())[0] == 200
        write(tmp_path, config(two, workers))
        assert (await reload(gateway)).status == 200
        assert await said(gateway) == "two"
        body = await client.rest()
        assert body.endswith(b"data: [DONE]\n\n")
        assert text_of(body) == "older"


async def test_many_reloads_at_once_are_done_one_after_the_other(
    tmp_path: Path, workers: int, one: ScriptedServer, two: ScriptedServer
) -> None:
    async with gateway_process(tmp_path, config(one, workers)) as gateway:
        await gateway.until_ready()
        for number in range(10):
            write(tmp_path, config((one, two)[number % 2], workers))
            gateway.signal(signal.SIGHUP)
            assert (await reload(gateway)).status == 200
        answers = await asyncio.gather(*(reload(gateway) for _ in range(8)))
        assert {answer.status for answer in answers} == {200}
        await until_all_say(gateway, "two")


async def test_a_terminal_that_goes_away_still_ends_the_gateway(tmp_path: Path, one: ScriptedServer) -> None:
    write(tmp_path, config(one))
    ours, theirs = pty.openpty()
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GATEWAY_")}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-P", "-m", "gateway", "serve", "-c", "config.yaml"),
        cwd=tmp_path,
        env={**environ, "PYTHONPATH": str(ROOT)},
        stdin=theirs,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(theirs)
    assert process.stdout is not None
    async with asyncio.timeout(60):
        while not (await process.stdout.readline()).startswith(b"curl "):
            assert process.returncode is None
        os.close(ours)
        process.send_signal(signal.SIGHUP)
        assert await process.wait() == 0
