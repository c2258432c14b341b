"""No configuration key is accepted without effect: whatever the schema has is read by something that acts on it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import trustme
from pydantic import BaseModel

from gateway.config.provider_settings import BRIDGE_ONLY, LOCAL_ONLY, NOT_OF_BRIDGES, REMOTE_ONLY, ProviderSettings
from gateway.config.schema import NOT_IN_FILE, Settings
from tests.fakes.bridged import STAND_IN
from tests.fakes.gateway_process import ROOT, until_ready
from tests.fakes.gguf_files import write_decoder, write_lora

ADMIN_KEY = "admin-key-0123456789"
KEPT_FOR_CHECKS = {("Settings", "version")}
"""It is there to be checked: this version knows one shape of the file."""

REFUSED = {
    "openai_compatible": {*LOCAL_ONLY, *BRIDGE_ONLY},
    "local": {*REMOTE_ONLY, *BRIDGE_ONLY},
    "litellm_bridge": {*LOCAL_ONLY, *NOT_OF_BRIDGES},
}
"""The keys that each kind of provider refuses; all others it has to act on."""


def every_key() -> Iterator[tuple[str, str, str]]:
    """All keys of the schema, by section; those of providers once for each kind."""
    seen: list[type[BaseModel]] = [Settings]
    for section in seen:
        for name, field in section.model_fields.items():
            if section is Settings and name in NOT_IN_FILE:
                continue
            seen += [part for part in _sections(field.annotation) if part not in seen]
            kinds = REFUSED if section is ProviderSettings else {"": set()}
            yield from ((section.__name__, kind, name) for kind, refused in kinds.items() if name not in refused)


def _sections(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in getattr(annotation, "__args__", ()):
        yield from _sections(part)


def config(folder: Path, port: int) -> str:
    return f"""
version: 1
server: {{port: {port}, upstream_client: httpx}}
auth: {{admin_key: {ADMIN_KEY}}}
storage: {{database_url: "sqlite+aiosqlite:///{folder}/gateway.db"}}
providers:
  remote: {{type: openai_compatible, base_url: "https://127.0.0.1:9/v1", ca_file: ca.pem}}
  local: {{type: local, model_path: tiny.gguf, lora: [{{path: lora.gguf}}]}}
  fetched: {{type: local}}
  bridge: {{type: litellm_bridge, api_key: k}}
models:
  m: {{targets: [{{provider: remote, model: m, price: {{input: 1, output: 2}}}}], retries: {{attempts: 1}}}}
  b: {{targets: [{{provider: bridge, model: acme/m}}], retries: {{attempts: 1}}}}
  l: {{targets: [{{provider: local}}]}}
  many/*:
    targets: [{{provider: remote, base: m, adapters: {{a: a}}, overrides: {{lora: {{model: "{{adapter}}"}}}}}}]
"""


async def keys_read(folder: Path) -> set[tuple[str, str, str]]:
    """The keys that a gateway reads to start and to answer a few requests."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "config.yaml").write_text(config(folder, port))
    write_decoder(folder / "tiny.gguf")
    write_lora(folder / "lora.gguf")
    trustme.CA().cert_pem.write_to_path(str(folder / "ca.pem"))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "tests.fakes.recorded_settings", "read.json", "serve", "-c", "config.yaml"),
        env={
            **os.environ,
            "GATEWAY_OFFLINE": "1",
            "GATEWAY_LOCAL_DIR": str(folder),
            "PYTHONPATH": os.pathsep.join(map(str, (STAND_IN, ROOT))),
        },
        cwd=folder,
        stdout=asyncio.subprocess.DEVNULL,
    )
    try:
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=60) as client:
            await until_ready(client, process)
            admin = {"authorization": f"Bearer {ADMIN_KEY}"}
            made = await client.post("/admin/keys", json={"name": "a"}, headers=admin)
            bearer = {"authorization": f"Bearer {made.json()['secret']}"}
            for model in ("m", "b"):
                chat = {"model": model, "stream": True, "messages": [{"role": "user", "content": "Hello."}]}
                await client.post("/v1/chat/completions", json=chat, headers=bearer)
            await client.get("/metrics")
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(process.wait(), 30)
    return {tuple(read) for read in json.loads((folder / "read.json").read_text())}


async def test_every_key_is_read_by_something_that_acts_on_it(tmp_path: Path) -> None:
    read = await keys_read(tmp_path)

    unread = [key for key in every_key() if key not in read and (key[0], key[2]) not in KEPT_FOR_CHECKS]
    assert not unread, unread
