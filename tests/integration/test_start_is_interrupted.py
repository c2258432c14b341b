"""Ctrl-C and SIGTERM end a command that has not come to serve yet, whatever it waits for."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.gateway_process import ROOT

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}

both_signals = pytest.mark.parametrize("number", [*CODES])


class Mute:
    """A server that takes connections and says nothing."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.port = 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reached.set()
        with contextlib.suppress(OSError):
            await reader.read()
        writer.close()


@pytest.fixture
async def mute() -> AsyncIterator[Mute]:
    server = Mute()
    async with await asyncio.start_server(server, "127.0.0.1", 0) as listening:
        server.port = listening.sockets[0].getsockname()[1]
        yield server


@contextlib.asynccontextmanager
async def command(
    folder: Path, settings: dict[str, Any], *arguments: str, **environ: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    (folder / "config.yaml").write_text(json.dumps({"version": 1, "server": {"port": 0}, **settings}))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GATEWAY_", "PIP_", "UV_"))}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "gateway", *arguments, "-c", "config.yaml"),
        cwd=folder,
        env={**kept, "PYTHONPATH": str(ROOT), "GATEWAY_LOCAL_DIR": str(folder), **environ},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        # What it has started holds its outputs open, and asyncio waits for these.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def interrupted(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    """Send the signal, and see that it ends the process as told; what it waited for would take much longer."""
    process.send_signal(number)
    async with asyncio.timeout(4):
        _, errors = await process.communicate()
    assert process.returncode == CODES[number], errors.decode()
    assert f"stopped by {number.name}" in errors.decode()
    assert "Traceback" not in errors.decode()


def provider(port: int) -> dict[str, Any]:
    return {
        "providers": {"p": {"type": "openai_compatible", "base_url": f"http://127.0.0.1:{port}/v1"}},
        "models": {"m": {"targets": [{"provider": "p", "model": "m"}]}},
    }


@both_signals
@pytest.mark.parametrize("arguments", [["serve"], ["serve", "--workers", "2"], ["db", "upgrade"], ["keys", "list"]])
async def test_a_migration_that_waits_for_a_lock(tmp_path: Path, number: signal.Signals, arguments: list[str]) -> None:
    file = tmp_path / "gateway.db"
    holder = sqlite3.connect(file, isolation_level=None)
    holder.execute("PRAGMA journal_mode=WAL")
    holder.execute("BEGIN IMMEDIATE")
    with contextlib.closing(holder):
        async with command(tmp_path, provider(9), *arguments) as process:
            await until_open(process, Path(f"{file}-shm"))
            await interrupted(process, number)


async def until_open(process: asyncio.subprocess.Process, file: Path) -> None:
    """Return once *process*, or one that it has started to migrate, has *file* open."""
    async with asyncio.timeout(40):
        while not any(_target(link) == str(file) for pid in _with_children(process.pid) for link in _open_files(pid)):
            assert process.returncode is None
            await asyncio.sleep(0.02)


def _with_children(pid: int) -> list[int]:
    return [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]


def _open_files(pid: int) -> list[Path]:
    try:
        return list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:  # it has just ended
        return []


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return ""


@both_signals
@pytest.mark.parametrize("arguments", [["serve"], ["serve", "--workers", "2"], ["keys", "list"]])
async def test_a_database_that_does_not_answer(
    tmp_path: Path, number: signal.Signals, arguments: list[str], mute: Mute
) -> None:
    storage = {"storage": {"database_url": f"postgresql+asyncpg://u:p@127.0.0.1:{mute.port}/d"}}
    async with command(tmp_path, {**provider(9), **storage}, *arguments) as process:
        await asyncio.wait_for(mute.reached.wait(), 20)
        await interrupted(process, number)


@both_signals
async def test_a_model_that_is_being_fetched(tmp_path: Path, number: signal.Signals, mute: Mute) -> None:
    settings = {"providers": {"l": {"type": "local"}}, "models": {"m": {"targets": [{"provider": "l"}]}}}
    index = f"http://127.0.0.1:{mute.port}/simple"
    async with command(tmp_path, settings, "serve", PIP_INDEX_URL=index, UV_INDEX_URL=index) as process:
        await asyncio.wait_for(mute.reached.wait(), 20)
        await interrupted(process, number)
    left = {path.name for path in tmp_path.iterdir()}
    assert not [name for name in left if name.startswith(".fetch-")]


@both_signals
async def test_a_provider_that_is_asked_and_does_not_answer(tmp_path: Path, number: signal.Signals, mute: Mute) -> None:
    async with command(tmp_path, provider(mute.port), "check", "--live") as process:
        await asyncio.wait_for(mute.reached.wait(), 20)
        await interrupted(process, number)
