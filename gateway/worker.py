"""One of several worker processes: `python -m gateway.worker FD PARENT`, as `workers.py` starts it."""

from __future__ import annotations

import os
import socket
import sys
import threading
from typing import TYPE_CHECKING

from gateway.http_server import ServerOptions
from gateway.reload.in_worker import ParentReloads
from gateway.reload.orders import Order, Unpacker
from gateway.server import run
from gateway.settings import Settings
from gateway.start_errors import START_ERRORS, exit_code
from gateway.telemetry.logging import close_logging, configure_logging
from local_engine.lifeline import die_with_parent

if TYPE_CHECKING:
    from gateway.app import Application

READY = b"ready\n"
"""What a worker writes to its standard output once it accepts connections."""


def main() -> int:
    """Serve until the parent says stop; what keeps a worker from starting goes to standard error in a sentence."""
    listener, parent = (int(argument) for argument in sys.argv[1:])
    unpacker = Unpacker()
    settings, early = _receive(unpacker)
    worker = _Worker(settings, unpacker, early)
    die_with_parent(parent, 0, close_logging, worker.heard)
    configure_logging(settings.telemetry.log_format, settings.telemetry.log_level)
    sock = socket.socket(fileno=listener)
    try:
        return run(worker.create, sock, ServerOptions.of(settings), worker.serve)
    except START_ERRORS as error:
        sys.stderr.write(f"error: {error}\n")
        return exit_code(error)


class _Worker:
    """The application, and the orders of the parent that wait for it."""

    def __init__(self, settings: Settings, unpacker: Unpacker, early: list[Order]) -> None:
        self._settings = settings
        self._unpacker = unpacker
        self._early = early
        self._reloads: ParentReloads | None = None
        self._lock = threading.Lock()
        self._application: Application | None = None

    async def create(self) -> Application:
        from gateway.app import Application

        with self._lock:
            self._reloads = reloads = ParentReloads()
            for order in self._early:
                reloads.order(order)
        self._application = await Application.create(self._settings, parent=reloads)
        return self._application

    async def serve(self) -> None:
        """Tell that connections are accepted, and do what the parent orders from then on."""
        os.write(1, READY)
        assert self._reloads is not None
        assert self._application is not None
        await self._reloads.obey(self._application.installation)

    def heard(self, data: bytes) -> None:
        """Take what the parent has written; called in a thread of its own."""
        with self._lock:
            for order in self._unpacker.feed(data):
                assert not isinstance(order, Settings)
                if self._reloads is not None:
                    self._reloads.order(order)
                else:
                    self._early.append(order)


def _receive(unpacker: Unpacker) -> tuple[Settings, list[Order]]:
    """The settings to start by, and the orders that came with them."""
    orders: list[Settings | Order] = []
    while not orders:
        data = os.read(0, 65536)
        if not data:
            sys.exit("this is started by `gateway serve --workers`, not by hand")
        orders += unpacker.feed(data)
    settings = orders.pop(0)
    assert isinstance(settings, Settings)
    return settings, [order for order in orders if not isinstance(order, Settings)]


if __name__ == "__main__":
    sys.exit(main())
