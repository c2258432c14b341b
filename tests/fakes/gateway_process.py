"""`gateway serve` as a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import httpx2

from tests.fakes.raw_client import RawClient, post

ROOT = Path(__file__).resolve().parents[2]


class GatewayProcess:
    """A running `gateway serve`, and what it has printed."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.printed = ""
        self.errors = ""
        self.curl: list[str] = []
        self._clients: list[RawClient] = []
        assert process.stderr is not None
        self._errors = asyncio.ensure_future(self._read_errors(process.stderr))

    async def until_ready(self, seconds: float = 60.0) -> None:
        """Read what it prints up to the line to paste."""
        assert self.process.stdout is not None
        async with asyncio.timeout(seconds):
            while not self.curl:
                line = (await self.process.stdout.readline()).decode()
                assert line, f"it ended: {self.errors}"
                self.printed += line
                if line.startswith("curl "):
                    self.curl = await _as_a_shell_reads(line)

    @property
    def port(self) -> int:
        return int(next(word for word in self.curl if word.startswith("http")).split(":")[2].split("/")[0])

    async def connect(self) -> RawClient:
        client = await RawClient.connect(self.port)
        self._clients.append(client)
        return client

    async def close_clients(self) -> None:
        for client in self._clients:
            await client.close()

    async def chat(self) -> RawClient:
        """Send the request that the printed line would send."""
        headers = [self.curl[index + 1] for index, word in enumerate(self.curl) if word == "-H"]
        body = self.curl[self.curl.index("-d") + 1].encode()
        client = await self.connect()
        await client.send(post("/v1/chat/completions", body, *headers))
        return client

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def ended(self, seconds: float = 30.0) -> int:
        """The exit code, once it has ended."""
        async with asyncio.timeout(seconds):
            code = await self.process.wait()
            await self._errors
        return code

    def children(self) -> list[int]:
        """The processes it has started."""
        listing = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(pid) for pid in listing.read_text().split()]

    async def _read_errors(self, stream: asyncio.StreamReader) -> None:
        while line := await stream.readline():
            self.errors += line.decode()


@contextlib.asynccontextmanager
async def gateway_process(
    folder: Path, config: dict[str, Any], *arguments: str, modules: Sequence[Path] = ()
) -> AsyncIterator[GatewayProcess]:
    """Start `gateway serve` in *folder*; whatever is left of it at the end is killed.

    *modules*: further folders to find modules in.
    """
    (folder / "config.yaml").write_text(json.dumps(config))
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GATEWAY_")}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-P", "-m", "gateway", "serve", "-c", "config.yaml", *arguments),
        cwd=folder,
        env={**environ, "PYTHONPATH": os.pathsep.join(map(str, (*modules, ROOT)))},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    gateway = GatewayProcess(process)
    try:
        yield gateway
    finally:
        await gateway.close_clients()
        if process.returncode is None:
            process.kill()
        await gateway.ended()


async def _as_a_shell_reads(line: str) -> list[str]:
    """The words a shell makes of *line*; the key in it may be asked of a file."""
    shell = await asyncio.create_subprocess_exec("sh", "-c", f"printf '%s\\n' {line}", stdout=asyncio.subprocess.PIPE)
    words, _ = await shell.communicate()
    return words.decode().splitlines()


async def until_ready(client: httpx2.AsyncClient, process: asyncio.subprocess.Process) -> None:
    """Return when the gateway that *process* runs is ready; *client* is one of its clients."""
    async with asyncio.timeout(60):
        while True:
            assert process.returncode is None, "the gateway did not start"
            try:
                if (await client.get("/health/ready")).status_code == 200:
                    return
            except httpx2.TransportError:
                pass
            await asyncio.sleep(0.1)
