"""Local engines over reloads: unchanged ones run on, others are replaced when nobody needs them any more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from local_engine.engine import LocalEngine
from local_engine.state import EngineState
from tests.fakes.gateway import RunningGateway, chat_body, request, running_gateway
from tests.fakes.openai_answers import whole
from tests.fakes.raw_client import RawClient
from tests.fakes.scripted_server import ScriptedServer
from tests.unit.reload.reloading import ADMIN_KEY, reload_to, settings, write

SMALL = {"type": "local", "context": 512, "slots": 1}


def local(**options: Any) -> dict[str, Any]:
    return {
        "auth": {"admin_key": ADMIN_KEY},
        "providers": {"local": {**SMALL, **options}},
        "models": {"m": {"targets": [{"provider": "local"}]}},
    }


def engine_of(gateway: RunningGateway) -> LocalEngine:
    (engine,) = gateway.services.backends._engines.values()
    assert isinstance(engine, LocalEngine)
    return engine


async def begun(gateway: RunningGateway) -> RawClient:
    client = await gateway.connect()
    body = chat_body(stream=True, temperature=0, max_tokens=120, ignore_eos=True)
    await client.send(request("/v1/chat/completions", body))
    assert (await client.head())[0] == 200
    return client


@pytest.mark.usefixtures("model_file")
async def test_an_engine_that_nothing_changed_for_keeps_its_process() -> None:
    async with running_gateway(local()) as gateway:
        engine = engine_of(gateway)
        await engine.wait_ready(60)
        pid = engine.pid

        await reload_to(gateway, {**local(queue=3), "aliases": {"a": "m"}})

        assert engine_of(gateway) is engine
        assert engine.pid == pid
        assert gateway.services.backends.queues["local"].queue_limit == 3
        assert (await gateway.chat(model="a", max_tokens=2, timeout=60)).status == 200


@pytest.mark.usefixtures("model_file")
async def test_an_engine_with_other_options_takes_over_while_the_old_one_ends_its_stream() -> None:
    async with running_gateway(local()) as gateway:
        old = engine_of(gateway)
        client = await begun(gateway)

        await reload_to(gateway, local(slots=2))
        new = engine_of(gateway)

        assert new is not old
        assert old.state is EngineState.READY
        assert (await gateway.chat(max_tokens=2, timeout=60)).status == 200
        assert (await client.rest(60)).endswith(b"data: [DONE]\n\n")
        await gateway.wait_for(lambda: old.state is EngineState.STOPPED, 10)
        assert (new.state, old.pid) == (EngineState.READY, None)


@pytest.mark.usefixtures("model_file")
async def test_an_engine_that_is_removed_stops_and_one_that_is_added_starts() -> None:
    async with ScriptedServer([whole("hosted")]) as server, running_gateway(local()) as gateway:
        engine = engine_of(gateway)
        await engine.wait_ready(60)

        await reload_to(gateway, settings(server))
        await gateway.wait_for(lambda: engine.state is EngineState.STOPPED, 10)
        assert (await gateway.chat()).json["choices"][0]["message"]["content"] == "hosted"

        await reload_to(gateway, local())
        assert engine_of(gateway) is not engine
        assert (await gateway.chat(max_tokens=2, timeout=60)).status == 200


@pytest.mark.usefixtures("model_file")
async def test_what_was_begun_for_a_configuration_that_fails_is_stopped_again(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    async with running_gateway(local()) as gateway:
        engine = engine_of(gateway)
        content = local()
        content["providers"]["second"] = SMALL
        content["providers"]["tls"] = {
            "type": "openai_compatible",
            "base_url": "https://127.0.0.1:9",
            "ca_file": str(tmp_path / "ca.pem"),
        }
        write(gateway, content)

        assert (await gateway.post("/admin/reload", b"", key=ADMIN_KEY)).status == 400

        assert engine_of(gateway) is engine
        installer = gateway.services.reloads._installer  # type: ignore[attr-defined]
        assert [*installer._parts._running] == [engine]
