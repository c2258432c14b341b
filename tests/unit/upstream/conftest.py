"""Runs the suite over both implementations of the HTTP client, on both event loops."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import pytest

from gateway.deadlines import Deadlines
from gateway.upstream.base import Origin, RequestHead, Upstream
from gateway.upstream.http1 import Http1Upstream
from gateway.upstream.httpx_client import HttpxUpstream
from tests.fakes.scripted_server import ScriptedServer


def pytest_asyncio_loop_factories(config: Any, item: Any) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    factories: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.new_event_loop}
    if sys.platform != "win32":
        import uvloop

        factories["uvloop"] = uvloop.new_event_loop
    return factories


@pytest.fixture
async def http1() -> AsyncIterator[Http1Upstream]:
    deadlines = Deadlines()
    upstream = Http1Upstream(deadlines)
    yield upstream
    await upstream.aclose()
    deadlines.close()


@pytest.fixture
async def httpx_upstream() -> AsyncIterator[HttpxUpstream]:
    upstream = HttpxUpstream()
    yield upstream
    await upstream.aclose()


@pytest.fixture(params=["http1", "httpx"])
def implementation(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def upstream(implementation: str, http1: Http1Upstream, httpx_upstream: HttpxUpstream) -> Upstream:
    """Each implementation in turn."""
    return http1 if implementation == "http1" else httpx_upstream


@pytest.fixture
def head_for() -> Callable[..., RequestHead]:
    """Makes the head of a request to a scripted server."""

    def make(server: ScriptedServer, **origin: Any) -> RequestHead:
        target = Origin(**{"host": "127.0.0.1", "port": server.port, **origin})
        return RequestHead("POST", "/v1/chat/completions", target, (("authorization", "Bearer sk-secret"),))

    return make
