"""Reloads while clients send: no request fails, none sees two configurations, nothing is left behind."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import weakref
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from adapters.target import Target
from gateway.services import Configuration
from tests.fakes.gateway import RunningGateway, chat_body, request, running_gateway
from tests.fakes.openai_answers import good_stream, text_of, whole
from tests.fakes.scripted_server import RecordedRequest, Script, ScriptedServer
from tests.unit.reload.reloading import reload_to, settings

CLIENTS = 16
RELOADS = 50


def versioned(server: ScriptedServer, version: str) -> dict[str, Any]:
    """Provider, key, model and alias all say which configuration they belong to."""
    address = f"http://127.0.0.1:{server.port}/{version}/v1"
    return {
        **settings(),
        "response_model": "alias",
        "providers": {
            version: {"type": "openai_compatible", "base_url": address, "api_key": f"sk-0123456789-{version}"}
        },
        "models": {f"model-{version}": {"targets": [{"provider": version, "model": f"up-{version}"}]}},
        "aliases": {"m": f"model-{version}"},
    }


def answer(recorded: RecordedRequest) -> Script:
    """An answer that says what the request said of its configuration."""
    body = json.loads(recorded.body)
    told = f"{recorded.path.split('/')[1]} {recorded.headers['authorization'][-1]} {body['model'][-1]}"
    return good_stream(told) if body.get("stream") else [whole(told)]


async def ask_until(gateway: RunningGateway, stopped: asyncio.Event, *, stream: bool) -> Counter[str]:
    """Send one request after another; count what each was answered by."""
    seen: Counter[str] = Counter()
    client = await gateway.connect()
    while not stopped.is_set():
        await client.send(request("/v1/chat/completions", chat_body(stream=stream)))
        got = await client.answer()
        assert got.status == 200, got.body
        text = text_of(got.body) if stream else got.json["choices"][0]["message"]["content"]
        headers = got.headers
        told = (*text.split(), headers["x-gateway-provider"], headers["x-gateway-model"][-1])
        assert len(set(told)) == 1, told
        assert headers["x-gateway-target"] == f"{told[0]}/up-{told[0]}"
        seen[told[0]] += 1
    return seen


async def test_fifty_reloads_under_load_fail_no_request_and_mix_no_configurations() -> None:
    async with ScriptedServer(answer) as server, running_gateway(versioned(server, "a")) as gateway:
        await gateway.chat()  # the key is known from now on: what the database does under load is another matter
        stopped = asyncio.Event()
        clients = [
            asyncio.create_task(ask_until(gateway, stopped, stream=number % 2 == 0)) for number in range(CLIENTS)
        ]
        for number in range(RELOADS):
            await reload_to(gateway, versioned(server, "ba"[number % 2]))
        stopped.set()
        seen = sum(await asyncio.gather(*clients), Counter[str]())

        assert min(seen["a"], seen["b"]) > CLIENTS
        assert gateway.metric("gateway_requests_total", status="200") == seen.total() + 1
        assert gateway.metric("gateway_upstream_attempts_total", outcome="ok") == seen.total() + 1


@pytest.mark.long
async def test_reloads_leave_nothing_behind() -> None:
    async with ScriptedServer(answer) as server, running_gateway(versioned(server, "a"), watch=True) as gateway:

        async def there_and_back(times: int) -> None:
            for _ in range(times):
                for version in "ba":
                    await reload_to(gateway, versioned(server, version))
                    assert (await gateway.chat()).status == 200

        await there_and_back(3)
        before = await held(gateway)
        await there_and_back(RELOADS // 2)
        async with asyncio.timeout(10):
            # Connections that were closed a moment ago are still taking their leave.
            while more := {name: count for name, count in (await held(gateway)).items() if count > before[name]}:
                await asyncio.sleep(0.05)
        assert not more


async def test_an_old_configuration_is_gone_without_the_collector_coming_by() -> None:
    async with ScriptedServer(answer) as server, running_gateway(versioned(server, "a")) as gateway:
        old = weakref.ref(gateway.services.catalog)
        gc.disable()
        try:
            await reload_to(gateway, versioned(server, "b"))
            await gateway.wait_for(lambda: old() is None)
        finally:
            gc.enable()


async def held(gateway: RunningGateway) -> dict[str, int]:
    """What reloads might leave behind, once all that they began is over."""
    await gateway.close_clients()
    await gateway.wait_for(lambda: not any(task.get_name().startswith("retiring") for task in asyncio.all_tasks()))
    await gateway.quiet()
    gateway.services.settlements.flush()
    gc.collect()
    things = gc.get_objects()
    return {
        "configurations": sum(isinstance(thing, Configuration) and "m" in thing.settings.aliases for thing in things),
        "targets": sum(isinstance(thing, Target) and thing.provider in ("a", "b") for thing in things),
        "tasks": len(asyncio.all_tasks()),
        "sockets": sum(_is_socket(fd) for fd in os.listdir("/proc/self/fd")),
        "watches": sum(_watches(info) for info in Path("/proc/self/fdinfo").iterdir()),
        "deadlines": len(gateway.services.deadlines._watches),
        "series": gateway.services.metrics.render().count(b"\n"),
    }


def _is_socket(fd: str) -> bool:
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/self/fd/{fd}").startswith("socket:")
    return False


def _watches(info: Path) -> int:
    with contextlib.suppress(OSError):
        return info.read_text().count("inotify wd:")
    return 0
