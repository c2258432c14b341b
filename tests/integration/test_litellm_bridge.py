"""Requests that go through a bridge: a process of its own, which runs a stand-in for the litellm library here."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from gateway.bridge.errors import BridgeMissingError
from tests.fakes.bridged import KEY_OF_PROVIDER, bridge, bridged_gateway, events
from tests.fakes.gateway import CHAT, HELLO, RunningGateway, chat_body, request, running_gateway


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log.jsonl"


async def test_a_chat_is_answered_by_a_call_of_the_library(log: Path) -> None:
    provider = bridge(log, base_url="https://acme.example/v1", options={"api_version": "7"}, headers={"x-team": "red"})
    async with bridged_gateway(provider) as gateway:
        answer = await gateway.chat(timeout=30, temperature=0.5)

    assert answer.status == 200, answer.body
    assert answer.json["choices"][0]["message"]["content"] == "Hello there"
    assert answer.json["usage"]["total_tokens"] == 5
    assert events(log)[0]["call"] == {
        "model": "acme/m", "messages": [HELLO], "temperature": 0.5, "max_retries": 0, "api_version": "7",
        "api_base": "https://acme.example/v1", "api_key": KEY_OF_PROVIDER, "extra_headers": {"x-team": "red"},
    }  # fmt: skip


async def test_completions_and_embeddings_go_through_it_too(log: Path) -> None:
    async with bridged_gateway(bridge(log)) as gateway:
        text = await gateway.post("/v1/completions", {"model": "m", "prompt": "Hi"}, timeout=30)
        body = {"model": "m", "input": "Hi", "encoding_format": "base64"}
        vectors = await gateway.post("/v1/embeddings", body, timeout=30)

    assert text.json["choices"][0]["text"] == "Hello there"
    assert vectors.json["data"][0]["embedding"] == "AAAAPwAAgD4="
    assert [event["event"] for event in events(log)] == ["completion", "embedding"]


async def test_a_stream_passes_through_with_its_usage(log: Path) -> None:
    async with bridged_gateway(bridge(log)) as gateway:
        answer = await gateway.chat(timeout=30, stream=True, stream_options={"include_usage": True})

    chunks = [json.loads(line[6:]) for line in answer.body.decode().splitlines() if line.startswith("data: {")]
    assert "".join(c["choices"][0]["delta"].get("content") or "" for c in chunks if c["choices"]) == "Hello there"
    assert chunks[-1]["usage"]["total_tokens"] == 5
    assert answer.body.endswith(b"data: [DONE]\n\n")


async def test_nothing_runs_before_the_first_request(log: Path) -> None:
    async with bridged_gateway(bridge(log)) as gateway:
        before = _children()
        await gateway.chat(timeout=30)

        assert len(_children() - before) == 1
    assert _children() <= before


async def test_the_process_sees_its_own_variables_and_no_others(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "gsk-not-for-bridges")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    async with bridged_gateway(bridge(log)) as gateway:
        await gateway.chat(timeout=30)
        pid = events(log)[0]["pid"]
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().decode()
        environment = Path(f"/proc/{pid}/environ").read_bytes().decode()

    seen = events(log)[0]
    assert seen["seen"] == {
        "ACME_KEY": "k-acme-variable", "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MODE": "PRODUCTION",
    }  # fmt: skip
    assert not {"GROQ_API_KEY", "HTTPS_PROXY", "HOME"} & set(seen["variables"])
    for secret in (KEY_OF_PROVIDER, "k-acme-variable", "gsk-not-for-bridges"):
        assert secret not in arguments
        assert secret not in environment


async def test_the_gateway_itself_never_imports_the_library(log: Path) -> None:
    async with bridged_gateway(bridge(log)) as gateway:
        assert (await gateway.chat(timeout=30)).status == 200

        assert not [name for name in sys.modules if name.partition(".")[0] == "litellm"]


async def test_what_the_provider_refuses_comes_back_as_such(log: Path) -> None:
    async with bridged_gateway(bridge(log), "m", "limited") as gateway:
        limited = await gateway.chat(timeout=30, model="limited")
        lacking = await gateway.chat("x-gateway-unsupported: reject", timeout=30, seed=1)
        learned = await gateway.chat(timeout=30, seed=1)

    assert limited.status == 429
    assert "slow down" in limited.json["error"]["message"]
    assert lacking.status == 400
    assert "acme does not support parameters: ['seed']" in lacking.json["error"]["message"]
    assert "litellm" not in lacking.json["error"]["message"].replace("litellm_bridge", "")
    assert (learned.status, learned.headers["x-gateway-adjusted"]) == (200, "seed=dropped")


async def test_an_error_in_a_stream_ends_it_without_done(log: Path) -> None:
    async with bridged_gateway(bridge(log), "breaks") as gateway:
        answer = await gateway.chat(timeout=30, model="breaks", stream=True)

    assert b"slow down" in answer.body
    assert b"[DONE]" not in answer.body


@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_leaves_ends_the_call(log: Path, stream: bool) -> None:
    async with bridged_gateway(bridge(log), "m", "endless") as gateway:
        await gateway.chat(timeout=30)
        client = await gateway.connect()
        await client.send(request(CHAT, chat_body(model="endless", stream=stream)))
        await gateway.wait_for(lambda: events(log)[-1]["call"].get("model") == "acme/endless")
        if stream:
            await gateway.wait_for(lambda: bool(gateway.services.in_flight))

        await client.close()

        await gateway.wait_for(lambda: events(log)[-1]["event"] == "cancelled")


async def test_a_process_that_dies_is_replaced(log: Path) -> None:
    async with bridged_gateway(bridge(log), "m", "dies") as gateway:
        died = await gateway.chat(timeout=30, model="dies")
        after = await gateway.chat(timeout=30)

    assert died.status == 502
    assert after.status == 200
    first, second = (event["pid"] for event in events(log))
    assert first != second


async def test_a_process_that_was_killed_is_replaced(log: Path) -> None:
    async with bridged_gateway(bridge(log)) as gateway:
        await gateway.chat(timeout=30)
        pid = events(log)[0]["pid"]
        os.kill(pid, signal.SIGKILL)
        await gateway.wait_for(lambda: not _alive(pid))

        assert (await gateway.chat(timeout=30)).status == 200


async def test_a_request_past_the_memory_limit_fails_alone(log: Path) -> None:
    async with bridged_gateway(bridge(log, memory="1GiB"), "m", "hungry") as gateway:
        hungry = await gateway.chat(timeout=30, model="hungry")
        after = await gateway.chat(timeout=30)

    assert hungry.status == 502
    assert after.status == 200


async def test_a_library_that_cannot_be_loaded_is_a_503_that_hides_the_reason(log: Path) -> None:
    async with bridged_gateway(bridge(log, env={"STAND_IN_IMPORT": "fails"})) as gateway:
        answer = await gateway.chat(timeout=30)

    assert answer.status == 503
    assert "the bridge 'acme' is not running" in answer.json["error"]["message"]
    assert "told not to load" not in answer.body.decode()


async def readiness(gateway: RunningGateway) -> tuple[int, dict[str, Any]]:
    client = await gateway.connect()
    await client.send(b"GET /health/ready HTTP/1.1\r\nhost: x\r\n\r\n")
    answer = await client.answer(10)
    return answer.status, answer.json["checks"]["bridge acme"]


async def test_readiness_calls_it_idle_until_it_is_asked_and_ready_then(log: Path) -> None:
    async with bridged_gateway(bridge(log)) as gateway:
        before = await readiness(gateway)
        await gateway.chat(timeout=30)
        after = await readiness(gateway)

    assert before == (200, {"ok": True, "state": "idle"})
    assert after == (200, {"ok": True, "state": "ready"})


async def test_a_gateway_whose_only_bridge_has_failed_is_not_ready(log: Path) -> None:
    async with bridged_gateway(bridge(log, env={"STAND_IN_IMPORT": "fails"})) as gateway:
        await gateway.chat(timeout=30)
        status, check = await readiness(gateway)

    assert (status, check["ok"], check["state"]) == (503, False, "failed")
    assert check["reason"] == "it is failed; the log says why"


async def test_a_missing_library_ends_the_start_and_names_what_to_install(log: Path) -> None:
    settings = {
        "providers": {"acme": bridge(log)},
        "models": {"m": {"targets": [{"provider": "acme", "model": "acme/m"}]}},
    }

    with pytest.raises(BridgeMissingError, match=r"pip install 'switchgear\[litellm\]'"):
        async with running_gateway(settings):
            pass


def _children() -> set[int]:
    """The processes that run a bridge for this one."""
    found = set()
    for place in Path("/proc").glob("[0-9]*"):
        try:
            arguments = (place / "cmdline").read_bytes()
            parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == os.getpid() and b"gateway.bridge.child" in arguments:
            found.add(int(place.name))
    return found


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
