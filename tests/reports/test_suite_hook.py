"""The hook turns a neutral setup into a running gateway. Its base class comes with the suites; one stands in here."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import signal
import socket
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import httpx2
import pytest

from gateway.catalog import Catalog
from gateway.settings import load_settings
from tests.fakes.gateway_process import until_ready
from tests.fakes.openai_answers import whole
from tests.fakes.scripted_server import ScriptedServer


class Base:
    """What the suites' own base class gives a hook, as far as it is needed."""

    KEY = "sk-gw-client-1234567890abcdef"

    def __init__(self, args: Any) -> None:
        self.args = args
        self.port = 0

    def public_name(self, case: dict[str, Any], name: str) -> str:
        return f"{case['cid']}-{name}"

    def named_key(self, case: dict[str, Any], key: dict[str, Any]) -> str:
        return f"sk-gw-{case['cid']}-{key['name']}-0123456789"


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    package, base = ModuleType("gateways"), ModuleType("gateways.base")
    base.Base = Base  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "gateways", package)
    monkeypatch.setitem(sys.modules, "gateways.base", base)
    spec = importlib.util.spec_from_file_location("suite_hook", Path(__file__).with_name("hook.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = module.Hook(SimpleNamespace(workdir=tmp_path))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        made.port = free.getsockname()[1]
    return made


def case(**setup: Any) -> dict[str, Any]:
    upstream = {"provider": "vllm", "model": "qwen", "max_output_tokens": 100, "context_window": 2000}
    plain = {
        "upstreams": {"main": upstream, "backup": {"provider": "generic", "model": "m"}},
        "models": [{"name": "chat", "targets": ["main"], "fallbacks": ["backup"], "retries": 1, "timeout": 2.5}],
        "prices": {"main": {"input": 1, "output": 2}},
    }
    return {"cid": "c1", "setup": plain | setup, "request": {"path": "/v1/chat/completions"}}


def test_a_setup_becomes_a_configuration_with_fallbacks_as_further_targets(hook: Any, tmp_path: Path) -> None:
    hook.configure("workers=1", [case()], lambda cid, up: f"http://127.0.0.1:9/{cid}/{up}/v1", lambda *_: "sk-up-1")

    catalog = Catalog.build(load_settings(tmp_path / f"gateway-{hook.port}.yaml", environ={}))
    model = catalog.models["c1-chat"]

    assert [target.provider for target in model.targets] == ["c1-main", "c1-backup"]
    assert [target.spec.id for target in model.targets] == ["vllm", "openai_compatible"]
    assert model.targets[0].context_window == 2000
    assert model.targets[0].price is not None
    assert (model.first_event_seconds, model.stall_seconds, model.attempts) == (2.5, 2.5, 2)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"keys": [{"name": "k", "budget_usd": 1}]}, "budgets"),
        ({"keys": [{"name": "k", "rpm": 5}]}, "rate limits"),
        ({"models": [{"name": "chat", "targets": ["main"], "strategy": "latency"}]}, "latency"),
        ({"upstreams": {"main": {"provider": "vllm", "model": "m", "quirks": {"teleports": True}}}}, "teleports"),
    ],
)
def test_what_is_not_built_is_named(hook: Any, changed: dict[str, Any], reason: str) -> None:
    assert hook.cannot(case()) is None
    assert reason in hook.cannot(case(**changed))


async def test_the_command_starts_a_gateway_that_answers_and_knows_the_cost(hook: Any, tmp_path: Path) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    async with ScriptedServer([whole("hello", usage=usage)]) as upstream:
        command, environment = await asyncio.to_thread(
            hook.configure,
            "workers=1",
            [case(keys=[{"name": "k", "models": ["chat"]}])],
            lambda *_: f"http://127.0.0.1:{upstream.port}/v1",
            lambda *_: "sk-up-1",
        )
        log = (tmp_path / "log").open("wb")
        process = await asyncio.create_subprocess_exec(
            *command, env=os.environ | environment, stdout=log, stderr=log, start_new_session=True
        )
        try:
            async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{hook.port}", trust_env=False) as client:
                await until_ready(client, process)
                reply = await client.post(
                    "/v1/chat/completions",
                    json={"model": "c1-chat", "messages": [{"role": "user", "content": "hi"}]},
                    headers={"authorization": "Bearer sk-gw-c1-k-0123456789"},
                )
                assert reply.status_code == 200, reply.text
                assert reply.json()["choices"][0]["message"]["content"] == "hello"
                told = await hook.cost_of(None, "", None, None, [reply])
                stripped = SimpleNamespace(headers={"x-request-id": reply.headers["x-request-id"]})
                stored = await hook.cost_of(None, "", None, None, [stripped])
                assert told == stored == pytest.approx(20e-6)
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGTERM)
            await asyncio.wait_for(process.wait(), 20)
            log.close()
        assert "sk-up-1" not in (tmp_path / "log").read_text()
