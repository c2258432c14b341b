"""Taking out any one patch makes something fail: none is there for nothing, and none is there twice."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field

import pytest
import pytest_asyncio

from tests.conformance.missing import checks, is_missed
from tests.conformance.models import EVERY, MODELS
from tests.conformance.mutations import Mutation, mutations
from tests.conformance.rehearsal import Rehearsal, fresh_adapter, rehearsal

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rehearsed() -> AsyncIterator[Rehearsal]:
    async with rehearsal(EVERY) as running:
        yield running


@dataclass(slots=True)
class Patch:
    """A patch of one provider, with all the models that have it."""

    mutation: Mutation
    models: list[str] = field(default_factory=list)


def patches_of(rehearsed: Rehearsal, kind: str) -> list[Patch]:
    """The patches of a type of provider, each once: most are the same for all of its models."""
    found: dict[tuple[str, str], Patch] = {}
    for model, (other, _) in EVERY.items():
        if other == kind:
            for mutation in mutations(rehearsed.backend(model).adapter):
                found.setdefault((mutation.name, mutation.what), Patch(mutation)).models.append(model)
    return list(found.values())


async def survivors(rehearsed: Rehearsal, patches: Iterator[Patch]) -> list[str]:
    return [
        f"{patch.models[0]}: {patch.mutation.name}"
        for patch in patches
        if not await is_missed(rehearsed, patch.models, patch.mutation)
    ]


async def test_one_patch_of_each_class_is_missed(rehearsed: Rehearsal) -> None:
    """The first of each class that there is; the long suite takes them all."""
    seen: dict[str, Patch] = {}
    for model in MODELS:
        for mutation in mutations(rehearsed.backend(model).adapter):
            seen.setdefault(mutation.kind, Patch(mutation, [model]))

    assert len(seen) > 50
    assert await survivors(rehearsed, iter(seen.values())) == []


@pytest.mark.long
@pytest.mark.timeout(1800)
async def test_nothing_fails_while_all_patches_are_there(rehearsed: Rehearsal) -> None:
    for model in EVERY:
        backend = rehearsed.backend(model)
        for check in checks():
            if check.teaches:
                backend.adapter = fresh_adapter(backend.target)
            await check.run(rehearsed, model)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", sorted({kind for kind, _ in EVERY.values()}))
async def test_every_patch_is_missed(rehearsed: Rehearsal, kind: str) -> None:
    assert await survivors(rehearsed, iter(patches_of(rehearsed, kind))) == []
