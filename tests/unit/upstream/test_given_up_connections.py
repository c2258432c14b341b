"""Connections that nobody waits for any more, at every moment of their opening, under the loop the gateway runs on."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from gateway.deadlines import Deadlines
from gateway.server import loop_factory
from gateway.upstream.base import Origin, RequestHead
from gateway.upstream.http1 import Http1Upstream
from tests.fakes.scripted_server import ScriptedServer

MOMENTS = 40


def on_own_loop(work: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(work)


async def _leave_at_every_moment(origin: Origin) -> None:
    deadlines = Deadlines()
    upstream = Http1Upstream(deadlines)
    head = RequestHead("POST", "/v1/x", origin, ())
    for moment in range(MOMENTS):
        task = asyncio.create_task(upstream.send(head, b"{}"))
        for _ in range(moment):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
    async with asyncio.timeout(5):
        while any(stats.open for stats in upstream.stats().values()):
            await asyncio.sleep(0.01)
    await upstream.aclose()
    deadlines.close()


@pytest.mark.parametrize("by_socket", [True, False], ids=["unix", "tcp"])
def test_a_connection_given_up_at_any_moment_leaves_its_pool(tmp_path: Path, by_socket: bool) -> None:
    path = str(tmp_path / "s.sock")

    async def work() -> None:
        async with ScriptedServer(unix_path=path if by_socket else None) as server:
            host, port = ("socket", 80) if by_socket else ("127.0.0.1", server.port)
            origin = Origin(host, port, unix_path=path if by_socket else None, keep_alive=False)
            await _leave_at_every_moment(origin)

    on_own_loop(work())
