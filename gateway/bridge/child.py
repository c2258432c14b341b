"""A bridge's process: loads litellm and serves it. Nothing else of the gateway does, not even by name.

It is started as ``python -m gateway.bridge.child FD`` with a listening unix socket as descriptor FD. Standard input is
a pipe that brings `Orders` on one line and ends when the parent does. Standard output carries one JSON object:
``{"ready": version}`` once requests are accepted, or ``{"failed": reason}`` before the process exits.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import signal
import socket
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TextIO

from gateway.bridge.orders import ChildExit, Orders
from local_engine.lifeline import die_with_parent
from local_engine.reports import claim_stdout, tell

LIBRARY = "litellm"
_KEEP_ALIVE_SECONDS = 300
_GRACE_SECONDS = 1


def main() -> int:
    listener = int(sys.argv[1])
    orders = Orders.from_json(sys.stdin.buffer.readline().decode())
    die_with_parent(orders.parent_pid, sys.stdin.fileno(), lambda: None)
    # A terminal's Ctrl-C goes to the whole group: the parent decides when its bridge ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    _limit_memory(orders.memory_bytes)
    os.environ.update(orders.environ)
    report = claim_stdout()
    try:
        library = _load()
    except Exception as error:  # noqa: BLE001 - hundreds of modules are imported, and any error there means the same
        tell(report, {"failed": f"{LIBRARY} cannot be loaded: {type(error).__name__}: {error}"})
        return ChildExit.LIBRARY_UNUSABLE
    asyncio.run(_serve(library, orders, listener, report))
    return ChildExit.OK


def _limit_memory(limit_bytes: int) -> None:
    """Let this process take no more address space: it fails then, and not the machine."""
    import resource  # not on Windows, where there are no bridges

    _, most = resource.getrlimit(resource.RLIMIT_AS)
    limit = limit_bytes if most == resource.RLIM_INFINITY else min(limit_bytes, most)
    resource.setrlimit(resource.RLIMIT_AS, (limit, most))


def _load() -> Any:
    """The library, without anything that reports to somebody or reaches for the network by itself."""
    library: Any = importlib.import_module(LIBRARY)
    library.telemetry = False
    library.suppress_debug_info = True  # its advice goes to standard output
    library.disable_hf_tokenizer_download = True
    library.drop_params = False  # what a provider lacks is to be told, and the gateway decides
    library.num_retries = 0
    for name in ("callbacks", "success_callback", "failure_callback", "_async_success_callback"):
        setattr(library, name, [])
    return library


async def _serve(library: Any, orders: Orders, listener: int, report: TextIO) -> None:
    import uvicorn

    from gateway.bridge.serving import BridgeApp

    config = uvicorn.Config(
        BridgeApp(library, orders),
        loop="asyncio",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    sock = socket.socket(fileno=listener)
    server = uvicorn.Server(config)
    serving = asyncio.ensure_future(server.serve([sock]))
    # The server tells of its start by nothing but this flag.
    while not server.started and not serving.done():  # noqa: ASYNC110
        await asyncio.sleep(0)
    if server.started:
        tell(report, {"ready": _version()})
    await serving


def _version() -> str:
    try:
        return version(LIBRARY)
    except PackageNotFoundError:
        return "unknown"


if __name__ == "__main__":
    sys.exit(main())
