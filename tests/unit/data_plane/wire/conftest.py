"""The server that reads the wire itself, with limits that a test can reach."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from gateway.data_plane.limits import WireLimits
from tests.fakes.fake_plane import Served, serve_plane

LIMITS = WireLimits(
    max_body_bytes=100_000,
    header_seconds=0.3,
    body_seconds=0.3,
    keep_alive_seconds=0.4,
    write_stall_seconds=0.4,
    buffer_bytes=64 * 1024,
    linger_seconds=0.4,
    linger_bytes=1_000_000,
)


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async with serve_plane("uvicorn", LIMITS) as served:
        yield served
