"""The real model, fetched once, and engines that run it; gateways of one process and of several."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from local_engine.engine import LocalEngine
from local_engine.options import EngineConfig
from local_engine.pace import Pace
from local_engine.pull import pull
from local_engine.registry import DEFAULT_MODEL, default_store

QUICK = Pace(
    first_backoff_seconds=0.1,
    longest_backoff_seconds=0.4,
    health_interval_seconds=0.2,
    health_timeout_seconds=1.0,
)


@pytest.fixture(params=[1, 2], ids=["one-process", "two-workers"])
def workers(request: pytest.FixtureRequest) -> int:
    """How many processes answer requests."""
    count: int = request.param
    return count


@pytest.fixture(scope="session")
def model_file() -> Path:
    """The default model in the user's own store, where `gateway serve` looks too."""
    return pull(DEFAULT_MODEL, default_store())


@pytest.fixture
def small_config(model_file: Path) -> EngineConfig:
    return EngineConfig(model=DEFAULT_MODEL, context=512, slots=1, cache_ram_mib=16)


@pytest.fixture
async def engine(small_config: EngineConfig) -> AsyncIterator[LocalEngine]:
    """A ready engine with one slot."""
    running = LocalEngine(small_config, QUICK)
    await running.start()
    try:
        await running.wait_ready(60)
        yield running
    finally:
        await running.stop()


@pytest.fixture
async def start_engine(small_config: EngineConfig) -> AsyncIterator[Callable[..., LocalEngine]]:
    """Makes engines like the small one but for the fields given; the test starts them, the fixture stops them."""
    made: list[LocalEngine] = []

    def make(pace: Pace = QUICK, **changes: object) -> LocalEngine:
        made.append(LocalEngine(replace(small_config, **changes), pace))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for one in made:
        await one.stop()
