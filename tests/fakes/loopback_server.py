"""A real uvicorn server on a loopback port, in the test's own event loop."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any

import uvicorn


@contextlib.asynccontextmanager
async def serving(app: Any, http: Callable[..., Any] | str = "httptools") -> AsyncIterator[Loopback]:
    """Run *app*; leaving the block breaks off the connections there are, and waits for what their requests then do.

    It is uvicorn as it is but for that: its own way to stop takes a fifth of a second, and hundreds of tests would
    wait. A test of that way sets ``server.should_exit``.
    """
    # asyncio sets TCP_NODELAY on TCP sockets that say so: without it, an answer's two writes wait 40 ms.
    sock = socket.socket(proto=socket.IPPROTO_TCP)
    sock.bind(("127.0.0.1", 0))
    config = uvicorn.Config(
        app,
        http=http,  # type: ignore[arg-type]  # any factory of protocols will do
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
    )
    server = uvicorn.Server(config)
    # Without `serve`, which would take over the signals of the test run.
    task = asyncio.create_task(server._serve([sock]))
    while not server.started:
        if task.done():
            await task
        await asyncio.sleep(0)
    try:
        yield Loopback(server, sock.getsockname()[1])
    finally:
        task.cancel()
        await asyncio.wait([task])
        for listener in server.servers:
            listener.close()
        for connection in list(server.server_state.connections):
            connection.transport.abort()
        await asyncio.wait([asyncio.create_task(asyncio.sleep(0)), *server.server_state.tasks])
        if not task.cancelled():
            task.result()


class Loopback:
    """The running server and its port."""

    def __init__(self, server: uvicorn.Server, port: int) -> None:
        self.server = server
        self.port = port
