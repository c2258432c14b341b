"""A plane of small handlers behind each of the servers, with limits that a test can reach."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from gateway.data_plane.limits import WireLimits
from tests.fakes.fake_plane import IMPLEMENTATIONS, Served, serve_plane

LIMITS = WireLimits(
    max_body_bytes=100_000, body_seconds=0.4, progress_bytes=20_000, write_stall_seconds=0.6, buffer_bytes=64 * 1024
)


@pytest.fixture(params=IMPLEMENTATIONS)
async def served(request: pytest.FixtureRequest) -> AsyncIterator[Served]:
    """Each server in turn."""
    async with serve_plane(request.param, LIMITS) as served:
        yield served
