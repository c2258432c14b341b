"""A server that nobody asks anything rests, and still stops as soon as it is told to."""

from __future__ import annotations

import asyncio
import signal
from email.utils import parsedate_to_datetime

import pytest

from gateway import http_server
from gateway.data_plane.limits import WireLimits
from gateway.http_server import HttpServer, ServerOptions


def server() -> HttpServer:
    made = HttpServer(ServerOptions(WireLimits()))
    made.config.load()
    return made


def date_of(made: HttpServer) -> bytes:
    return dict(made.server_state.default_headers)[b"date"]


async def test_a_signal_is_not_kept_waiting_for_the_next_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "_TICK_SECONDS", 3600.0)
    made = server()
    running = asyncio.create_task(made.main_loop())
    await asyncio.sleep(0.05)
    assert not running.done()

    made.handle_exit(signal.SIGTERM, None)

    await asyncio.wait_for(running, 60)


async def test_one_that_came_during_the_start_ends_it_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "_TICK_SECONDS", 3600.0)
    made = server()
    made.handle_exit(signal.SIGINT, None)

    await asyncio.wait_for(made.main_loop(), 60)


async def test_each_tick_renews_the_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "_TICK_SECONDS", 0.01)
    made = server()
    running = asyncio.create_task(made.main_loop())
    await asyncio.sleep(0)
    first = date_of(made)
    while date_of(made) == first:
        await asyncio.sleep(0.01)
    made.handle_exit(signal.SIGTERM, None)
    await running

    assert parsedate_to_datetime(date_of(made).decode()) > parsedate_to_datetime(first.decode())
