"""Text completions and embeddings at every provider that has them, or can be made to: honoured, or refused and told."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.conformance.endpoint_uses import COMPLETIONS, EMBEDDINGS, complete, embed
from tests.conformance.models import MODELS, PROVIDERS
from tests.conformance.rehearsal import Rehearsal, rehearsal

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rehearsed() -> AsyncIterator[Rehearsal]:
    async with rehearsal(MODELS) as running:
        yield running


@pytest.mark.parametrize("use", COMPLETIONS)
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_text_completion(rehearsed: Rehearsal, provider: str, use: str) -> None:
    for stream in (False, True):
        await complete(use, stream, rehearsed, provider)


@pytest.mark.parametrize("use", EMBEDDINGS)
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_embeddings(rehearsed: Rehearsal, provider: str, use: str) -> None:
    await embed(use, rehearsed, provider)
