"""Runs one process that answers requests: from the event loop to the last answer of the drain."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from gateway import interruption
from gateway.http_server import HttpServer, ServerOptions
from gateway.served import ServedApplication


def run(
    create: Callable[[], Awaitable[ServedApplication]],
    sock: socket.socket,
    options: ServerOptions,
    on_listening: Callable[[], Any] = lambda: None,
) -> int:
    """Serve on *sock* until a signal ends it, and return the exit code: 0, `FORCED_EXIT`, or that of a given-up start.

    *on_listening* is called, and if it is a coroutine run beside the server, once connections are accepted. What
    *create* raises is passed on.
    """
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(serve(create, sock, options, on_listening))


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where there is one."""
    if sys.platform == "win32":
        return None
    import uvloop

    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


async def serve(
    create: Callable[[], Awaitable[ServedApplication]],
    sock: socket.socket,
    options: ServerOptions,
    on_listening: Callable[[], Any] = lambda: None,
) -> int:
    """As `run`, in a loop that is there already."""
    server = HttpServer(options)
    with server.handling_signals():
        # A signal during a slow start ends it, instead of being noticed when it is over.
        starting = asyncio.ensure_future(create())
        application = await _unless_stopped(starting, server)
        if application is None:
            return interruption.exit_code(server.stopped_by)
        try:
            await server.serve_application(application, sock, on_listening)
        finally:
            await application.aclose()
    return server.exit_code


async def _unless_stopped(starting: asyncio.Future[ServedApplication], server: HttpServer) -> ServedApplication | None:
    while not starting.done():
        await asyncio.wait({starting}, timeout=0.1)
        if server.should_exit and not starting.done():
            interruption.leave_soon(server.stopped_by)
            starting.cancel()
            await asyncio.wait({starting})
            # A failure by now is one of being cut off.
            return None if starting.cancelled() or starting.exception() else starting.result()
    return starting.result()
