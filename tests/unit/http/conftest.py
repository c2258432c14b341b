"""The HTTP application over a real SQLite file, with a client that speaks to it in process."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import httpx2
import pytest

from gateway.catalog import Catalog
from gateway.http.front import Front
from gateway.pipeline.authenticate import Authenticator
from gateway.reload.outcome import Outcome
from gateway.services import Services
from gateway.settings import load_settings
from gateway.storage.database import Database
from gateway.storage.keys import open_key_store
from gateway.telemetry.metrics import Metrics
from tests.fakes.databases import migrated_sqlite

ADMIN_KEY = "admin-key-0123456789"
KEY = "sk-existing-key-0123456789"
NARROW_KEY = "sk-narrow-key-0123456789"

CONFIG = """
version: 1
auth: {admin_key: admin-key-0123456789}
providers:
  fast: {type: groq, api_key: gsk_0123456789abcdef}
  slow: {type: cerebras, api_key: csk-0123456789abcdef}
  gpu: {type: vllm, base_url: "http://127.0.0.1:1/v1"}
models:
  chat:
    targets:
      - {provider: fast, model: llama, price: {input: 0.15, output: 0.6, cached_input: 0.075}, context_window: 32768}
      - {provider: slow, model: llama, context_window: 8192, max_output_tokens: 4096}
  private/small:
    targets: [{provider: gpu, model: qwen}]
aliases: {gpt-4o-mini: chat}
"""


@dataclass
class Backends:
    """The part of the backends that readiness and the list of models look at."""

    problems: dict[str, str] = field(default_factory=dict)
    """Why an engine cannot answer, by provider."""
    resting: set[str] = field(default_factory=set)
    """The targets that would not be asked."""

    def engine_problems(self) -> Iterable[tuple[str, str]]:
        return self.problems.items()

    def unusable(self, now: float) -> set[str]:
        return self.resting


class Reloads:
    """Reloads that come out as they are told to."""

    def __init__(self) -> None:
        self.last = Outcome(True, "start", 1.0)
        self.asked: list[tuple[str, bool]] = []

    async def reload(self, trigger: str, *, dry_run: bool = False) -> Outcome:
        self.asked.append((trigger, dry_run))
        return self.last


@pytest.fixture
async def services(tmp_path: Path) -> AsyncIterator[Services]:
    path = tmp_path / "config.yaml"
    path.write_text(CONFIG)
    url = f"sqlite+aiosqlite:///{tmp_path}/gateway.db"
    (tmp_path / "gateway.db").write_bytes(await migrated_sqlite())
    settings = load_settings(path, environ={}, flags={"storage.database_url": url})
    catalog = Catalog.build(settings)
    database = Database(url)
    await database.connect()
    keys = await open_key_store(database, {})
    authenticator = Authenticator(keys)
    await authenticator.poll()
    await keys.create("all", secret=KEY)
    await keys.create("narrow", models=["private/*"], secret=NARROW_KEY)
    # The parts that only the pipeline uses are left out.
    parts = SimpleNamespace(
        settings=settings,
        catalog=catalog,
        database=database,
        keys=keys,
        authenticator=authenticator,
        metrics=Metrics(catalog.models),
        settlements=SimpleNamespace(flush=lambda: None),
        backends=Backends(),
        current=SimpleNamespace(bridges={}),
        clock=time.monotonic,
        draining=False,
        reloads=Reloads(),
    )
    try:
        yield cast("Services", parts)
    finally:
        await database.aclose()


@pytest.fixture
async def client(services: Services) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(Front(services), raise_app_exceptions=False)
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://gateway.test:8080", headers={"authorization": f"Bearer {KEY}"}
    ) as client:
        yield client
