"""A server of the operator's own, kept like the bundled one: there when it answers, back when it dies, gone with us."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from local_engine import probe
from local_engine.engine import LocalEngine
from local_engine.errors import EngineDownError
from local_engine.options import EngineConfig
from local_engine.state import EngineState
from tests.fakes.gateway import running_gateway
from tests.fakes.gguf_files import write_decoder, write_encoder
from tests.integration.conftest import QUICK

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")

SCRIPT = str(Path(__file__).parents[1] / "fakes" / "llama_server.py")
PACE = replace(QUICK, look_at_use_seconds=0.05)
Make = Callable[..., LocalEngine]


def command(*words: str) -> tuple[str, ...]:
    return (sys.executable, SCRIPT, *words)


@pytest.fixture
def decoder(tmp_path: Path) -> str:
    return str(write_decoder(tmp_path / "d.gguf"))


@pytest.fixture
def helper_mark() -> str:
    """Seconds to sleep for, by which a process is known to be this test's."""
    return f"{random.randrange(10**5, 10**6)}.{os.getpid()}"


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    """Makes engines of a command; the test starts them."""
    made: list[LocalEngine] = []

    def make_one(*words: str, **options: Any) -> LocalEngine:
        config = EngineConfig("own", "own", context=256, command=command(*words), **options)
        made.append(LocalEngine(config, PACE))
        return made[-1]

    yield make_one
    for engine in made:
        await engine.stop()


async def answers(engine: LocalEngine) -> bool:
    answer = await probe.ask(engine.address, "/v1/completions", {"prompt": "Hi", "max_tokens": 3, "ignore_eos": True})
    return bool(answer["usage"]["completion_tokens"] == 3)


def running(mark: str) -> Iterator[int]:
    """The processes with *mark* in their command line."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if mark.encode() in line:
                yield int(entry.name)


async def until_gone(mark: str) -> None:
    async with asyncio.timeout(10):
        while any(running(mark)):
            await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    "words", [(), ("--host", "{socket}"), ("--port", "{port}")], ids=["no place", "by its socket", "by its port"]
)
async def test_it_is_ready_when_it_answers_and_nothing_of_it_stays(
    make: Make, decoder: str, words: tuple[str, ...]
) -> None:
    engine = make("-m", decoder, *words)
    await engine.start()
    await engine.wait_ready(60)

    assert await answers(engine)
    assert engine.supports_tools is False
    assert (engine.address.socket_path is None) == ("--port" in words)

    await engine.stop()
    await until_gone(decoder)


async def test_it_comes_back_when_it_is_killed(make: Make, decoder: str) -> None:
    engine = make("-m", decoder)
    await engine.start()
    await engine.wait_ready(60)
    (served,) = (pid for pid in running(decoder) if pid != engine.pid)

    os.kill(served, signal.SIGKILL)
    async with asyncio.timeout(20):
        while engine.state is EngineState.READY:
            await asyncio.sleep(0.01)
    assert "SIGKILL" in engine.last_error

    await engine.wait_ready(60)
    assert await answers(engine)
    assert engine.restarts == 1


async def test_it_ends_when_its_keeper_is_killed(make: Make, decoder: str) -> None:
    engine = make("-m", decoder)
    await engine.start()
    await engine.wait_ready(60)
    served = [pid for pid in running(decoder) if pid != engine.pid]
    assert engine.pid is not None

    os.kill(engine.pid, signal.SIGKILL)

    async with asyncio.timeout(10):
        while any(
            Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes() for pid in served
        ):
            await asyncio.sleep(0.05)
        while engine.restarts < 1:
            await asyncio.sleep(0.01)
    await engine.wait_ready(60)
    assert await answers(engine)


async def test_the_end_of_what_it_wrote_is_told(make: Make) -> None:
    engine = make("--die")
    await engine.start()
    async with asyncio.timeout(30):
        while engine.restarts < 1:
            await asyncio.sleep(0.01)

    assert "exited with code 3" in engine.last_error
    assert engine.log_tail[-2:] == ["this program has begun", "and has nothing to live for"]


async def test_one_that_never_answers_is_ended(make: Make) -> None:
    engine = make("--deaf", start_timeout_seconds=5)
    await engine.start()
    async with asyncio.timeout(30):
        while not engine.last_error:
            await asyncio.sleep(0.01)

    assert engine.last_error == "the command did not answer /health within 5 s"


async def test_a_program_that_is_not_there_fails_at_once() -> None:
    engine = LocalEngine(EngineConfig("own", command=("/nowhere/llama-server", "-m", "x")), PACE)
    await engine.start()
    try:
        with pytest.raises(EngineDownError, match=r"/nowhere/llama-server cannot be started: No such file"):
            await engine.wait_ready(30)
    finally:
        await engine.stop()


async def test_it_is_unloaded_when_idle_and_started_again(make: Make, decoder: str) -> None:
    engine = make("-m", decoder, idle_unload_seconds=0.2)
    await engine.start()
    await engine.wait_ready(60)
    async with asyncio.timeout(20):
        while engine.state is not EngineState.UNLOADED:
            await asyncio.sleep(0.01)
    await until_gone(decoder)

    await engine.claim(30)
    assert await answers(engine)
    engine.release()


@pytest.mark.parametrize("ending", ["stopped", "killed"])
async def test_what_it_started_ends_with_it(make: Make, decoder: str, helper_mark: str, ending: str) -> None:
    engine = make("-m", decoder, "--helper", helper_mark)
    await engine.start()
    await engine.wait_ready(60)
    (helper,) = running(f"sleep\0{helper_mark}")

    if ending == "killed":
        (served,) = (pid for pid in running(decoder) if pid != engine.pid)
        os.kill(served, signal.SIGKILL)
        async with asyncio.timeout(20):
            while helper in running(f"sleep\0{helper_mark}"):
                await asyncio.sleep(0.02)
    await engine.stop()

    await until_gone(f"sleep\0{helper_mark}")


async def test_nothing_of_it_outlives_a_killed_parent(decoder: str, helper_mark: str) -> None:
    code = f"""
import asyncio
from local_engine.engine import LocalEngine
from local_engine.options import EngineConfig

async def main():
    engine = LocalEngine(EngineConfig("own", command={command("-m", decoder, "--helper", helper_mark)!r}))
    await engine.start()
    await engine.wait_ready(60)
    print("ready", flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    async with asyncio.timeout(60):
        assert await parent.stdout.readline() == b"ready\n"

    parent.kill()
    await parent.wait()

    await until_gone(decoder)
    await until_gone(f"sleep\0{helper_mark}")


async def test_it_gets_neither_keys_nor_our_modules(make: Make, monkeypatch: pytest.MonkeyPatch, decoder: str) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "gsk-secret")
    engine = make("-m", decoder)
    await engine.start()
    await engine.wait_ready(60)
    (served,) = (pid for pid in running(decoder) if pid != engine.pid)

    environment = Path(f"/proc/{served}/environ").read_bytes()

    assert b"gsk-secret" not in environment
    assert b"PYTHONPATH" not in environment


async def test_a_gateway_serves_chats_and_vectors_through_commands(decoder: str, tmp_path: Path) -> None:
    encoder = str(write_encoder(tmp_path / "e.gguf"))
    providers = {
        "talks": {"type": "local", "command": list(command("-m", decoder)), "model": "mine", "context": 256},
        "embeds": {"type": "local", "command": list(command("-m", encoder, "--embedding")), "embeddings": True},
    }
    models = {name: {"targets": [{"provider": name}]} for name in providers}
    async with running_gateway({"providers": providers, "models": models}) as gateway:
        said = await gateway.chat(model="talks", max_tokens=4, ignore_eos=True, timeout=60)
        vectors = await gateway.post("/v1/embeddings", {"model": "embeds", "input": "a b"}, timeout=60)
        refused = await gateway.chat(model="embeds")

    assert (said.status, said.headers["x-gateway-target"]) == (200, "talks/mine")
    assert len(vectors.json["data"][0]["embedding"]) == 32
    assert refused.status == 400
