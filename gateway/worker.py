"""One of several worker processes: `python -m gateway.worker FD`, started by `workers.py` and by nothing else."""

from __future__ import annotations

import os
import pickle
import socket
import struct
import sys
from dataclasses import dataclass

from gateway.server import ServerOptions, run
from gateway.settings import Settings
from gateway.start_errors import START_ERRORS, exit_code
from gateway.telemetry.logging import close_logging, configure_logging
from local_engine.lifeline import die_with_parent

READY = b"ready\n"
"""What a worker writes to its standard output once it accepts connections."""

_LENGTH = struct.Struct("!Q")


@dataclass(frozen=True, slots=True)
class Orders:
    """What the parent tells a worker. The settings are sent, not read again: all workers shall have the same."""

    settings: Settings
    parent_pid: int

    def pack(self) -> bytes:
        data = pickle.dumps(self)
        return _LENGTH.pack(len(data)) + data

    @classmethod
    def receive(cls, pipe: int) -> Orders:
        """The orders at the head of *pipe*, and nothing of what follows: the parent keeps it open while it lives."""
        (length,) = _LENGTH.unpack(_read(pipe, _LENGTH.size))
        orders = pickle.loads(_read(pipe, length))  # noqa: S301 - written by our own parent
        assert isinstance(orders, cls)
        return orders


def main() -> int:
    """Serve until the parent says stop; what keeps a worker from starting goes to standard error in a sentence."""
    orders = Orders.receive(0)
    die_with_parent(orders.parent_pid, 0, close_logging)
    settings = orders.settings
    configure_logging(settings.telemetry.log_format, settings.telemetry.log_level)

    from gateway.app import Application

    sock = socket.socket(fileno=int(sys.argv[1]))
    try:
        return run(lambda: Application.create(settings), sock, ServerOptions.of(settings), _tell_ready)
    except START_ERRORS as error:
        sys.stderr.write(f"error: {error}\n")
        return exit_code(error)


def _tell_ready() -> None:
    os.write(1, READY)


def _read(pipe: int, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = os.read(pipe, size - len(data))
        if not piece:
            sys.exit("this is started by `gateway serve --workers`, not by hand")
        data += piece
    return data


if __name__ == "__main__":
    sys.exit(main())
