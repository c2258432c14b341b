"""Several local models behind one gateway: kinds, adapters by name, and models that take turns in memory."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local_engine import memory
from local_engine.engine import LocalEngine
from local_engine.free_memory import FreeMemory
from local_engine.state import EngineState
from tests.fakes.gateway import RunningGateway, running_gateway
from tests.fakes.gateway_process import GatewayProcess, gateway_process
from tests.fakes.gguf_files import write_decoder, write_encoder, write_lora
from tests.fakes.raw_client import Answer, post
from tests.soak.watched import metric
from tests.unit.reload.reloading import ADMIN_KEY, reload_to

CHAT = "/v1/chat/completions"
LOADED = "gateway_local_model_loaded"
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="engines are shared by unix sockets and locks")


def local(path: Path, **options: Any) -> dict[str, Any]:
    return {"type": "local", "model_path": str(path), "context": 256, "slots": 2, "threads": 1, **options}


def settings(providers: dict[str, Any], *patterns: str, **sections: Any) -> dict[str, Any]:
    """Each provider as a model by its name, and *patterns* over the first one."""
    models = {name: {"targets": [{"provider": name}]} for name in (*providers, *patterns)}
    for pattern in patterns:
        models[pattern]["targets"][0]["provider"] = next(iter(providers))
    return {"auth": {"admin_key": ADMIN_KEY}, "providers": providers, "models": models, **sections}


def chat(model: str, **more: Any) -> dict[str, Any]:
    body = {"model": model, "messages": [{"role": "user", "content": "hi"}], "max_tokens": 12, "temperature": 0}
    return body | {"ignore_eos": True, "cache_prompt": False, **more}


async def said(gateway: RunningGateway, model: str, **more: Any) -> str:
    answer = await gateway.post(CHAT, chat(model, **more), timeout=60)
    assert answer.status == 200, answer.body
    text: str = answer.json["choices"][0]["message"]["content"]
    return text


def engine_of(gateway: RunningGateway, provider: str) -> LocalEngine:
    engine = gateway.services.backends._engines[provider]
    assert isinstance(engine, LocalEngine)
    return engine


async def test_each_model_answers_what_it_is_for_and_refuses_the_rest(tmp_path: Path) -> None:
    providers = {
        "talks": local(write_decoder(tmp_path / "d.gguf")),
        "embeds": local(write_encoder(tmp_path / "e.gguf")),
    }
    async with running_gateway(settings(providers)) as gateway:
        assert await said(gateway, "talks")
        asked = {"input": ["a b", "c"], "encoding_format": "float"}
        vectors = await gateway.post("/v1/embeddings", {"model": "embeds", **asked}, timeout=60)
        refusals = [
            await gateway.post(CHAT, chat("embeds")),
            await gateway.post("/v1/embeddings", {"model": "talks", "input": "a"}),
        ]

    assert vectors.status == 200, vectors.body
    assert [len(item["embedding"]) for item in vectors.json["data"]] == [32, 32]
    for refusal in refusals:
        assert refusal.status == 400
        assert "does not offer" in refusal.json["error"]["message"]


async def test_clients_choose_an_adapter_by_its_name_and_the_base_has_none(tmp_path: Path) -> None:
    decoder = write_decoder(tmp_path / "d.gguf")
    mild, wild = write_lora(tmp_path / "mild.gguf", spread=0.5), write_lora(tmp_path / "wild.gguf", spread=2.0)
    lora = [{"path": str(mild), "name": "mild"}, {"path": str(wild), "name": "wild", "scale": 0.5}]
    async with running_gateway(settings({"base": local(decoder, lora=lora)}, "tuned/*")) as gateway:
        texts = {name: await said(gateway, name) for name in ("base", "tuned/mild", "tuned/wild")}
        again = {name: await said(gateway, name) for name in reversed(texts)}
        by_number = await said(gateway, "tuned/mild", lora=[{"id": 1, "scale": 1.0}])
        unknown = await gateway.post(CHAT, chat("tuned/other"))

    assert len(set(texts.values())) == 3
    assert again == texts
    assert by_number == texts["tuned/mild"], "a name is not to be got round by a number"
    assert unknown.status == 404


async def test_an_adapter_without_a_name_stays_on_beside_a_chosen_one(tmp_path: Path) -> None:
    decoder = write_decoder(tmp_path / "d.gguf")
    always, chosen = write_lora(tmp_path / "a.gguf"), write_lora(tmp_path / "c.gguf", seed=2)
    both = [{"path": str(always), "scale": 0.5}, {"path": str(chosen), "name": "chosen"}]
    texts = []
    for lora in (both, both[1:]):
        async with running_gateway(settings({"base": local(decoder, lora=lora)}, "tuned/*")) as gateway:
            texts += [await said(gateway, "base"), await said(gateway, "tuned/chosen")]

    assert len(set(texts)) == 4


async def test_an_adapter_that_was_replaced_is_loaded_with_the_next_reload(tmp_path: Path) -> None:
    decoder, lora = write_decoder(tmp_path / "d.gguf"), write_lora(tmp_path / "l.gguf", spread=0.5)
    content = settings({"base": local(decoder, lora=[{"path": str(lora)}])})
    async with running_gateway(content) as gateway:
        before, engine = await said(gateway, "base"), engine_of(gateway, "base")
        await reload_to(gateway, content)
        assert engine_of(gateway, "base") is engine, "nothing has changed"

        write_lora(lora, spread=2.0)
        await reload_to(gateway, content)

        assert await said(gateway, "base") != before
        assert engine_of(gateway, "base") is not engine


async def test_models_take_turns_in_memory_and_the_gateway_stays_ready(tmp_path: Path) -> None:
    decoder = write_decoder(tmp_path / "d.gguf")
    providers = {name: local(decoder) for name in ("a", "b", "c")}
    async with running_gateway(settings(providers, local_engine={"max_loaded": 1})) as gateway:
        engines = [engine_of(gateway, name) for name in providers]
        for name in ("a", "b", "c", "a"):
            assert await said(gateway, name)
            client = await gateway.connect()
            await client.send(b"GET /health/ready HTTP/1.1\r\nhost: g\r\n\r\n")
            assert (await client.answer()).status == 200
            loaded = {provider: await metric(gateway.port, LOADED, f'provider="{provider}"') for provider in providers}
            assert loaded == {provider: float(provider == name) for provider in providers}

        assert [engine.pid is not None for engine in engines] == [True, False, False]
        assert [engine.loads for engine in engines] == [2, 1, 1]

        await reload_to(gateway, settings(providers, local_engine={"max_loaded": 3}))
        for name in ("b", "c"):
            assert await said(gateway, name)
        assert [engine.loads for engine in engines] == [2, 2, 2], "they are the same, and all are loaded"


async def test_a_streamed_request_loads_a_model_that_was_idle(tmp_path: Path) -> None:
    async with running_gateway(settings({"m": local(write_decoder(tmp_path / "d.gguf"), idle_unload="1s")})) as gateway:
        engine = engine_of(gateway, "m")
        await engine.wait_ready(60)
        await gateway.wait_for(lambda: engine.state is EngineState.UNLOADED, 20)

        answer = await gateway.post(CHAT, chat("m", stream=True), timeout=60)

        assert answer.body.endswith(b"data: [DONE]\n\n")
        assert engine.loads == 2


def _key(gateway: GatewayProcess) -> str:
    return next(word for word in gateway.curl if word.startswith("Authorization"))


async def _ask(gateway: GatewayProcess, model: str) -> Answer:
    client = await gateway.connect()
    await client.send(post(CHAT, json.dumps(chat(model)).encode(), _key(gateway)))
    return await client.answer(60)


def _engines(gateway: GatewayProcess, is_engine: Callable[[bytes], bool] = lambda line: b"local_engine" in line) -> int:
    return sum(is_engine(Path(f"/proc/{pid}/cmdline").read_bytes()) for pid in gateway.children())


async def test_workers_share_models_of_which_only_one_is_loaded(tmp_path: Path) -> None:
    decoder = write_decoder(tmp_path / "d.gguf")
    content = settings({"a": local(decoder), "b": local(decoder)}, local_engine={"max_loaded": 1})
    del content["auth"]
    content |= {"version": 1, "server": {"port": 0, "workers": 2}, "telemetry": {"log_format": "json"}}
    async with gateway_process(tmp_path, content) as gateway:
        await gateway.until_ready()
        answers = await asyncio.gather(*(_ask(gateway, "ab"[number % 2]) for number in range(12)))
        assert _engines(gateway) == 1

    assert [answer.status for answer in answers] == [200] * 12
    assert "Traceback" not in gateway.errors


async def test_a_model_without_memory_is_refused_to_clients_and_explained_to_operators(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "free_memory", lambda: FreeMemory(20 << 20, 64 << 20))
    async with running_gateway(settings({"m": local(write_decoder(tmp_path / "d.gguf"))})) as gateway:
        await gateway.wait_for(lambda: bool(engine_of(gateway, "m").last_error), 20)
        refused = await gateway.post(CHAT, chat("m"), timeout=60)
        client = await gateway.connect()
        await client.send(b"GET /health/ready HTTP/1.1\r\nhost: g\r\n\r\n")
        health = await client.answer()

        monkeypatch.setattr(memory, "free_memory", lambda: FreeMemory(1 << 40))
        await gateway.wait_for(lambda: engine_of(gateway, "m").state is EngineState.READY, 60)
        assert await said(gateway, "m"), "as soon as there is enough, it is loaded"

    assert refused.status == 503
    assert b" MB" not in refused.body
    assert health.status == 503
    assert b"within the container's limit of 67 MB" in health.body
