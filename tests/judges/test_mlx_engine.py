"""mlx-lm's own server, on any CPU and with a model of random weights, behind the gateway and under the probe."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from gateway.catalog import Catalog
from gateway.probe.battery import probe
from gateway.probe.finding import Verdict
from gateway.probe.seen import Seen
from gateway.probe.wire import wire_to
from tests.fakes.gateway import RunningGateway, running_gateway
from tests.judges.environments import ask, interpreter

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(sys.platform == "win32", reason="mlx has no builds for Windows"),
]

STARTS_WITHIN_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Engine:
    """A running server."""

    port: int
    model: str

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "providers": {"mlx": {"type": "mlx_lm", "base_url": f"http://127.0.0.1:{self.port}/v1"}},
            "models": {"m": {"targets": [{"provider": "mlx", "model": self.model}]}},
        }


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Engine]:
    assert request.config.cache is not None
    python = interpreter("mlx", request.config.cache.mkdir("judges"))
    folder = tmp_path_factory.mktemp("mlx")
    (folder / "cache" / "hub").mkdir(parents=True)  # it lists its models from there, and fails where it is missing
    await ask(python, "tiny_mlx_model.py", {"folder": str(folder / "model")})
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "HF_HOME": str(folder / "cache"), "HF_HUB_OFFLINE": "1"}
    command = [str(python), "-m", "mlx_lm", "server", "--model", str(folder / "model"), "--port", str(port)]
    quiet = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*command, env=environ, cwd=folder, stdout=quiet, stderr=quiet)
    try:
        await _until_it_answers(port)
        yield Engine(port, str(folder / "model"))
    finally:
        process.terminate()
        await process.wait()


async def _until_it_answers(port: int) -> None:
    async with httpx2.AsyncClient(trust_env=False) as client, asyncio.timeout(STARTS_WITHIN_SECONDS):
        while True:
            try:
                if (await client.get(f"http://127.0.0.1:{port}/v1/models")).status_code == 200:
                    return
            except httpx2.TransportError:
                await asyncio.sleep(0.2)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(engine: Engine) -> AsyncIterator[RunningGateway]:
    async with running_gateway(engine.settings) as running:
        yield running


async def test_a_chat_is_the_same_whole_and_streamed(gateway: RunningGateway) -> None:
    body: dict[str, Any] = {"max_tokens": 24, "temperature": 0}
    whole = Seen(200, {}, (await gateway.chat(**body)).body)
    stream = await gateway.chat(**body, stream=True, stream_options={"include_usage": True})
    streamed = Seen(200, {}, stream.body, streamed=True)

    assert whole.text == streamed.text
    assert whole.finish_reasons == streamed.finish_reasons == ["length"]
    assert whole.usage["completion_tokens"] == streamed.usage["completion_tokens"] == 24
    assert streamed.payloads[-1] == b"[DONE]"


async def test_two_answers_are_made_of_two_requests(gateway: RunningGateway) -> None:
    answer = await gateway.chat(max_tokens=4, n=2)

    assert answer.headers["x-gateway-adjusted"] == "n=split"
    assert [choice["index"] for choice in answer.json["choices"]] == [0, 1]


async def test_log_probabilities_have_openais_shape(gateway: RunningGateway) -> None:
    answer = await gateway.chat(max_tokens=3, logprobs=True, top_logprobs=2)

    rows = answer.json["choices"][0]["logprobs"]["content"]
    assert len(rows) == 3
    assert all({"token", "logprob", "bytes", "top_logprobs"} <= row.keys() for row in rows)


async def test_a_stop_it_knows_nothing_of_ends_the_answer(gateway: RunningGateway) -> None:
    plain = Seen(200, {}, (await gateway.chat(max_tokens=24, temperature=0)).body)
    stopped = Seen(200, {}, (await gateway.chat(max_tokens=24, temperature=0, stop=[plain.text[5:7]])).body)

    assert plain.text[5:7] not in stopped.text
    assert stopped.finish_reasons == ["stop"]


async def test_a_negative_seed_is_answered(gateway: RunningGateway) -> None:
    assert (await gateway.chat(max_tokens=2, seed=-7)).status == 200


async def test_its_refusals_read_like_openais(gateway: RunningGateway) -> None:
    answer = await gateway.chat(temperature="hot")

    assert answer.status == 400
    assert answer.json["error"]["type"] == "invalid_request_error"


async def test_its_file_still_holds(engine: Engine, gateway: RunningGateway) -> None:
    catalog = Catalog.build(gateway.app.services.settings)
    model = catalog.models["m"]

    async with wire_to(gateway.app.services.settings, catalog, model, model.targets[0]) as wire:
        found = await probe(model.targets[0], wire.send)

    assert [one for one in found if one.verdict is Verdict.DIFFERS] == []
    assert sum(one.verdict is Verdict.HOLDS for one in found) > 70
