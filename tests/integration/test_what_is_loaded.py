"""What the processes of a gateway load to start and to answer requests, and what only administration brings in."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from gateway.late import LATE
from tests.fakes.gateway_process import gateway_process
from tests.fakes.openai_answers import good_stream
from tests.fakes.raw_client import RawClient
from tests.fakes.scripted_server import ScriptedServer

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and several workers need POSIX")

# Python imports a module of this name by itself when it starts. It adds nothing to what it looks at.
_TELL = """
import atexit, os, sys

def tell():
    with open(f"loaded-{os.getpid()}", "w") as file:
        print(" ".join(sys.orig_argv), *sys.modules, sep="\\n", file=file)

atexit.register(tell)
"""


def _config(upstream: ScriptedServer, workers: int) -> dict[str, Any]:
    address = f"http://127.0.0.1:{upstream.port}/v1"
    return {
        "version": 1,
        "server": {"port": 0, "workers": workers},
        "auth": {"admin_key": "admin-key-0123456789"},
        "providers": {"up": {"type": "openai_compatible", "base_url": address, "api_key": "sk-upstream"}},
        "models": {"m": {"targets": [{"provider": "up", "model": "m"}]}},
        "telemetry": {"log_format": "json"},
    }


async def _get(client: RawClient, path: str) -> bytes:
    await client.send(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admin-key-0123456789\r\n\r\n".encode())
    answer = await client.answer()
    assert answer.status == 200, answer
    return answer.body


async def _loaded(folder: Path, workers: int, *paths: str) -> dict[str, set[str]]:
    """The distributions of `LATE` that each process has loaded, by its command, after a first request and *paths*."""
    (folder / "inside").mkdir()
    (folder / "inside" / "sitecustomize.py").write_text(_TELL)
    async with (
        ScriptedServer(good_stream()) as upstream,
        gateway_process(folder, _config(upstream, workers), modules=[folder / "inside"]) as gateway,
    ):
        await gateway.until_ready()
        assert (await (await gateway.chat()).answer()).status == 200
        client = await gateway.connect()
        for path in paths:
            await _get(client, path)
        gateway.signal(signal.SIGTERM)
        assert await gateway.ended() == 0
    found: dict[str, set[str]] = {}
    for number, file in enumerate(sorted(folder.glob("loaded-*"))):
        command, *modules = file.read_text().splitlines()
        assert "sqlite3" in modules or "gateway.workers" in modules, "it has not told what it loaded"
        found[f"{number} {command}"] = {name.partition(".")[0] for name in modules} & LATE.keys()
    return found


@pytest.mark.parametrize("workers", [1, 2], ids=["one-process", "two-workers"])
async def test_to_start_and_to_answer_nothing_is_loaded_that_can_wait(tmp_path: Path, workers: int) -> None:
    loaded = await _loaded(tmp_path, workers, "/health/ready", "/metrics", "/v1/models", "/v1/models/m", "/")

    made = {command: found for command, found in loaded.items() if "gateway.storage.prepare" in command}
    assert list(made.values()) == [{"alembic", "sqlalchemy"}], "the database was made by another process"
    others = {command: found for command, found in loaded.items() if command not in made}
    assert len(others) == (1 if workers == 1 else 1 + workers)
    assert all(found == set() for found in others.values()), others


async def test_administration_loads_what_it_needs_and_no_migrations(tmp_path: Path) -> None:
    loaded = await _loaded(tmp_path, 1, "/admin/keys")

    (serving,) = (found for command, found in loaded.items() if "gateway.storage.prepare" not in command)
    assert serving == {"fastapi", "starlette", "sqlalchemy"}
