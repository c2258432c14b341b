"""Every provider with every parameter, streamed and not: native, patched or refused, as its file has it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.conformance.judging import ask, judge
from tests.conformance.message_uses import MESSAGES
from tests.conformance.models import EVERY, MODELS, PROVIDERS
from tests.conformance.rare_uses import INVALID, OWN, RARE
from tests.conformance.rehearsal import Rehearsal, rehearsal
from tests.conformance.uses import USES, Use

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def everyday() -> AsyncIterator[Rehearsal]:
    async with rehearsal(MODELS) as rehearsed:
        yield rehearsed


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rest() -> AsyncIterator[Rehearsal]:
    async with rehearsal(EVERY) as rehearsed:
        yield rehearsed


@pytest.mark.parametrize("use", USES, ids=lambda use: use.name)
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_parameter_at_a_provider(everyday: Rehearsal, provider: str, use: Use) -> None:
    for stream in (False, True):
        answer, seen = await ask(everyday, provider, use, stream)
        judge(everyday, provider, use, answer, seen)


@pytest.mark.parametrize("use", MESSAGES, ids=lambda use: use.name)
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_messages_at_a_provider(everyday: Rehearsal, provider: str, use: Use) -> None:
    for stream in (False, True):
        answer, seen = await ask(everyday, provider, use, stream)
        judge(everyday, provider, use, answer, seen)


@pytest.mark.long
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("model", EVERY)
async def test_every_request_at_every_model(rest: Rehearsal, model: str, stream: bool) -> None:
    wrong: dict[str, str] = {}
    for use in (*USES, *RARE, *OWN, *INVALID, *MESSAGES):
        answer, seen = await ask(rest, model, use, stream)
        try:
            judge(rest, model, use, answer, seen)
        except AssertionError as error:
            wrong[use.name] = str(error)
    assert wrong == {}
