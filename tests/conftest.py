"""What tests of several folders need."""

from __future__ import annotations

import contextlib
import gc
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import policies.retry
from adapters.catalogue.snapshot import Snapshot
from tests.fakes.price_snapshot import SNAPSHOT

# How long an example takes tells how busy the machine is, and nothing about the code.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that may take longest, so that the others are done while an hour's soak goes on."""
    allowed: dict[Path, float] = {}
    for item in items:
        mark = item.get_closest_marker("timeout")
        allowed[item.path] = max(allowed.get(item.path, 0.0), mark.args[0] if mark is not None and mark.args else 0.0)
    items.sort(key=lambda item: allowed[item.path], reverse=True)


def pytest_collection_finish() -> None:
    """Keep the garbage collector from going through ten thousand tests in every test that calls it."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def price_snapshot(monkeypatch: pytest.MonkeyPatch) -> Snapshot:
    """The tests' own snapshot of price lists, in place of the one that is shipped."""
    monkeypatch.setattr("adapters.catalogue.merged.shipped_snapshot", lambda: SNAPSHOT)
    return SNAPSHOT


@pytest.fixture
def short_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits between tries that a test can sit out."""
    monkeypatch.setattr(policies.retry, "BASE_BACKOFF_SECONDS", 0.01)
    monkeypatch.setattr(policies.retry, "MAX_BACKOFF_SECONDS", 0.02)


@pytest.fixture
def deaf_port() -> Iterator[int]:
    """A port that lets nobody in: its backlog is full, so that connecting takes for ever."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                waiting.connect(listener.getsockname())
        yield listener.getsockname()[1]
