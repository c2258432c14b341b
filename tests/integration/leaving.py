"""A client leaves; how its request was booked, and that nothing of it is left."""

from __future__ import annotations

import asyncio
from typing import Any

from gateway.pipeline.holds import CountingLedger, Resolution
from gateway.upstream.http1 import Http1Upstream
from tests.fakes.gateway import RunningGateway
from tests.fakes.raw_client import RawClient

SOON = 1.0
"""Seconds in which everything has to be over; a tenth of it is usual."""


async def leave(client: RawClient, way: str) -> None:
    client.reset() if way == "reset" else client.writer.close()


def resolutions(gateway: RunningGateway) -> dict[Resolution, int]:
    ledger = gateway.services.ledger
    assert isinstance(ledger, CountingLedger)
    return {how: count for how, count in ledger.resolutions.items() if count}


async def expect_nothing_left(gateway: RunningGateway, before: set[asyncio.Task[Any]]) -> None:
    """All that a request occupied is free again, soon."""
    await gateway.quiet(SOON)
    assert gateway.services.ledger.open_holds == 0
    assert gateway.request_watches() == []
    await gateway.wait_for(lambda: asyncio.all_tasks() <= before, SOON)
    model = next(iter(gateway.services.catalog.models.values()))
    if isinstance(gateway.services.backends.route(model).backends[0].upstream, Http1Upstream):
        await gateway.wait_for(lambda: gateway.upstream.in_use == 0, SOON)
