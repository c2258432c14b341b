"""A real uvicorn server on a loopback port, in the test's own event loop."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any

import uvicorn


@contextlib.asynccontextmanager
async def serving(app: Any, http: Callable[..., Any] | str = "httptools", **options: Any) -> AsyncIterator[Loopback]:
    """Run *app*; leaving the block shuts the server down as a signal would."""
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
        **options,
    )
    server = uvicorn.Server(config)
    # Without `serve`, which would take over the signals of the test run.
    task = asyncio.create_task(server._serve([sock]))
    while not server.started:
        if task.done():
            await task
        await asyncio.sleep(0.005)
    try:
        yield Loopback(server, sock.getsockname()[1])
    finally:
        server.should_exit = True
        await task


class Loopback:
    """The running server and its port."""

    def __init__(self, server: uvicorn.Server, port: int) -> None:
        self.server = server
        self.port = port
