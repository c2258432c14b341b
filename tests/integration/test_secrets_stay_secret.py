"""Secrets planted everywhere a running gateway could pick one up are found nowhere it writes."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2

from tests.fakes.gateway_process import until_ready
from tests.fakes.scripted_server import RecordedRequest, Script, ScriptedServer, answer

ROOT = Path(__file__).resolve().parents[2]

PROVIDER_KEY = "provider-canary-0f3a91"
PROVIDER_HEADER = "header-canary-77b2d0"
ADMIN_KEY = "admin-canary-5c1e88-0123"
CLIENT_KEY = "client-canary-9d44aa-0123"
FROM_CONFIG = (PROVIDER_KEY, PROVIDER_HEADER, ADMIN_KEY)
FROM_CLIENTS = (
    CLIENT_KEY,
    "gw-wrongcanary0123456789abcdef",
    "sk-xapicanary0123456789",
    "sk-querycanary0123456789",
    "gsk_pathcanary0123456789",
    "csk-modelcanary0123456789",
    "fw_requestidcanary0123456789",
    "the prompt canary: buy the harbour",
    "the cookie canary",
)


def talkative(request: RecordedRequest) -> Script:
    """Refuses the request, and repeats its head in the error, as careless servers do."""
    shown = request.raw_head.decode().replace("\r\n", " ").replace('"', "'")
    return [answer(b'{"error": {"message": "Incorrect API key provided. You sent: %b"}}' % shown.encode(), 401)]


@asynccontextmanager
async def gateway(directory: Path, provider_port: int) -> AsyncIterator[httpx2.AsyncClient]:
    """A gateway process that logs at debug level into files of *directory*."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = directory / "config.yaml"
    config.write_text(f"""
version: 1
auth: {{admin_key: {ADMIN_KEY}}}
storage: {{database_url: "sqlite+aiosqlite:///{directory}/gateway.db"}}
providers:
  talkative:
    type: openai_compatible
    base_url: "http://127.0.0.1:{provider_port}/v1"
    api_key: {PROVIDER_KEY}
    headers: {{x-extra: {PROVIDER_HEADER}}}
models: {{chat: {{targets: [{{provider: talkative, model: m}}]}}}}
telemetry: {{log_level: debug, log_format: json}}
""")
    with (directory / "stdout").open("wb") as out, (directory / "stderr").open("wb") as err:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "gateway", "serve", "-c", str(config), "--port", str(port)),
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            cwd=directory,
            stdout=out,
            stderr=err,
        )
        try:
            async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=60) as client:
                await until_ready(client, process)
                yield client
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
            await asyncio.wait_for(process.wait(), 30)


async def test_no_planted_secret_is_written_anywhere(tmp_path: Path) -> None:
    admin = {"authorization": f"Bearer {ADMIN_KEY}"}
    bearer = {"authorization": f"Bearer {CLIENT_KEY}"}
    (_, wrong, x_api_key, in_query, in_path, as_model, as_id, prompt, cookie) = FROM_CLIENTS
    chat = {"model": "chat", "messages": [{"role": "user", "content": prompt}]}
    async with ScriptedServer(talkative) as provider, gateway(tmp_path, provider.port) as client:
        made = await client.post("/admin/keys", json={"name": "canary", "secret": CLIENT_KEY}, headers=admin)
        assert made.status_code == 201
        answers = [
            await client.post("/v1/chat/completions", json=chat, headers={**bearer, "cookie": cookie}),
            await client.post("/v1/chat/completions", json={**chat, "stream": True}, headers=bearer),
            await client.post("/v1/chat/completions", json=chat, headers={"authorization": f"Bearer {wrong}"}),
            await client.post("/v1/chat/completions", json=chat, headers={"x-api-key": x_api_key}),
            await client.post(f"/v1/chat/completions?api_key={in_query}", json=chat, headers=bearer),
            await client.get(f"/v1/{in_path}", headers=bearer),
            await client.post("/v1/chat/completions", json={**chat, "model": as_model}, headers=bearer),
            await client.get("/v1/models", headers={**bearer, "x-request-id": as_id}),
            await client.post("/admin/keys", json={"name": "n", "secret": CLIENT_KEY}, headers=admin),
            await client.post("/admin/keys", json={"nam": CLIENT_KEY}, headers=admin),
            await client.get("/admin/keys", headers=admin),
            await client.get("/v1/models", headers=admin),
            await client.get("/health/ready"),
            await client.get("/openapi.json"),
            metrics := await client.get("/metrics"),
        ]

    assert [answer.status_code for answer in answers[:4]] == [502, 502, 401, 401]
    told = "\n".join(f"{answer.text}\n{answer.headers}" for answer in answers)
    for secret in (*FROM_CONFIG, CLIENT_KEY):
        assert secret not in told
    logged = (tmp_path / "stderr").read_text() + (tmp_path / "stdout").read_text()
    assert '"event":"request"' in logged
    first_key = (tmp_path / "gateway.key").read_text().strip()
    pepper = (tmp_path / "gateway.pepper").read_text().strip()
    assert f"$(cat {tmp_path}/gateway.key)" in logged
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("gateway.db*"))
    for secret in (*FROM_CONFIG, *FROM_CLIENTS, first_key, pepper):
        assert secret not in logged
        assert secret not in metrics.text
        assert secret.encode() not in stored
