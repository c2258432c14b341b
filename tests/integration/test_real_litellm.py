"""The bridge with the real litellm library, installed as users install it, in front of a simulated provider."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path

import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam

from tests.fakes.openai_answers import delta
from tests.fakes.scripted_server import Hang, Script, ScriptedServer, chunk, chunked_head
from tests.fakes.simulated import Simulated, simulated

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

CHECKOUT = Path(__file__).resolve().parents[2]
WRONG_KEY = "sk-wrong-key-0123456789"
SAY: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Say exactly: the sea"}]


@pytest.fixture(scope="module")
def python(request: pytest.FixtureRequest) -> Path:
    """An interpreter with the gateway's own pins and its extra; kept from run to run while both are what they are."""
    assert request.config.cache is not None
    pins = CHECKOUT / "requirements" / "runtime.txt"
    extra: list[str] = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["optional-dependencies"][
        "litellm"
    ]
    wanted = hashlib.sha256(pins.read_bytes() + repr((extra, sys.version)).encode()).hexdigest()
    home = request.config.cache.mkdir("litellm") / wanted[:16]
    interpreter = home / "bin" / "python"
    if not (home / "complete").exists():
        for command in (
            (sys.executable, "-m", "venv", "--clear", str(home)),
            (
                str(interpreter),
                "-m",
                "pip",
                "install",
                "-q",
                "-c",
                str(_constraints(home, pins)),
                *_names(pins),
                *extra,
            ),
        ):
            done = subprocess.run(command, capture_output=True, text=True, timeout=800, check=False)
            assert done.returncode == 0, done.stderr
        (home / "complete").touch()
    return interpreter


def _names(pins: Path) -> list[str]:
    return [line.removesuffix("\\").strip() for line in pins.read_text().splitlines() if line[:1].isalnum()]


def _constraints(home: Path, pins: Path) -> Path:
    """The pins without their hashes, as the extra has none to be compared with."""
    place = home.with_suffix(".txt")
    place.write_text("\n".join(_names(pins)))
    return place


@pytest.fixture
async def provider() -> AsyncIterator[Simulated]:
    async with simulated("openai", models=("acme-1",)) as sim:
        yield sim


@pytest.fixture
async def silent() -> AsyncIterator[ScriptedServer]:
    """Begins a stream, and then says nothing more."""
    begin: Script = [chunked_head(), chunk(delta(role="assistant", content="Well")), Hang()]
    async with ScriptedServer(lambda _: begin) as server:
        yield server


@pytest.fixture
async def client(
    python: Path, provider: Simulated, silent: ScriptedServer, tmp_path: Path
) -> AsyncIterator[openai.AsyncOpenAI]:
    """A client of a gateway process whose models are reached by way of the library."""
    right = {"type": "litellm_bridge", "base_url": provider.base_url, "api_key": provider.key}
    providers = {
        "right": right,
        "wrong": {**right, "api_key": WRONG_KEY},
        "silent": {**right, "base_url": f"http://127.0.0.1:{silent.port}/v1"},
    }
    config = {
        "version": 1,
        "auth": {"mode": "open"},
        "server": {"port": 0},
        "providers": providers,
        "models": {name: {"targets": [{"provider": name, "model": "openai/acme-1"}]} for name in providers},
    }
    (tmp_path / "config.yaml").write_text(json.dumps(config))
    process = await asyncio.create_subprocess_exec(
        str(python), "-m", "gateway", "serve", "-c", "config.yaml",
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(CHECKOUT)},
        stdout=asyncio.subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        async with asyncio.timeout(60):
            while b"OpenAI base URL: " not in (line := await process.stdout.readline()):
                assert line, "the gateway ended"
        base_url = line.decode().split(": ")[1].strip()
        async with openai.AsyncOpenAI(base_url=base_url, api_key="any", max_retries=0, timeout=60) as asking:
            yield asking
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        assert [_runs_litellm(pid) for pid in (process.pid, *map(int, children))] == [False, True]
    finally:
        process.send_signal(signal.SIGTERM)
        await process.wait()


def _runs_litellm(pid: int) -> bool:
    """Whether the process has loaded the native code that comes with the library."""
    return "/site-packages/tiktoken/" in Path(f"/proc/{pid}/maps").read_text()


async def test_a_chat_is_answered_whole_and_streamed(client: openai.AsyncOpenAI, provider: Simulated) -> None:
    whole = await client.chat.completions.create(model="right", messages=SAY, temperature=0.5, stop=["x"])

    assert whole.choices[0].message.content == "the sea"
    assert whole.usage is not None
    assert whole.usage.total_tokens > 0
    assert provider.requests[-1]["temperature"] == 0.5

    stream = await client.chat.completions.create(
        model="right", messages=SAY, stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]

    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "the sea"
    assert chunks[-1].usage is not None

    vectors = await client.embeddings.create(model="right", input=["the sea", "the sky"])

    assert [vector.index for vector in vectors.data] == [0, 1]


async def test_a_refusal_is_told_with_its_status_and_without_secrets(client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.APIStatusError) as refused:
        await client.chat.completions.create(model="wrong", messages=SAY)

    assert WRONG_KEY not in str(refused.value)
    assert "litellm." not in str(refused.value)


async def test_a_client_that_leaves_ends_the_call(client: openai.AsyncOpenAI, silent: ScriptedServer) -> None:
    stream = await client.chat.completions.create(model="silent", messages=SAY, stream=True)
    async for piece in stream:
        if piece.choices[0].delta.content:
            break
    await silent.wait_until(lambda server: server.open_connections == 1)

    await stream.close()

    await silent.wait_until(lambda server: server.open_connections == 0)
