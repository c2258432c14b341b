"""A gateway in front of the real model, and a client of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import openai
import pytest_asyncio

from tests.fakes.gateway import RunningGateway, running_gateway
from tests.integration.openai_sdk.sdk import client_of, settings


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(model_file: Path) -> AsyncIterator[RunningGateway]:
    async with running_gateway(settings(embeddings=True)) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(gateway: RunningGateway) -> AsyncIterator[openai.AsyncOpenAI]:
    async with client_of(gateway) as made:
        yield made
