"""One of several worker processes: `python -m gateway.worker FD PARENT`, as `workers.py` starts it."""

from __future__ import annotations

import os
import pickle
import socket
import struct
import sys

from gateway.server import ServerOptions, run
from gateway.settings import Settings
from gateway.start_errors import START_ERRORS, exit_code
from gateway.telemetry.logging import close_logging, configure_logging
from local_engine.lifeline import die_with_parent

READY = b"ready\n"
"""What a worker writes to its standard output once it accepts connections."""

_LENGTH = struct.Struct("!Q")


def pack(settings: Settings) -> bytes:
    """What a parent writes to a worker's standard input, and then keeps open for as long as it lives.

    The settings are sent, not read again: all workers shall have the same, those started later among them.
    """
    data = pickle.dumps(settings)
    return _LENGTH.pack(len(data)) + data


def _receive(pipe: int) -> Settings:
    (length,) = _LENGTH.unpack(_read(pipe, _LENGTH.size))
    settings = pickle.loads(_read(pipe, length))  # noqa: S301 - written by our own parent
    assert isinstance(settings, Settings)
    return settings


def main() -> int:
    """Serve until the parent says stop; what keeps a worker from starting goes to standard error in a sentence."""
    listener, parent = (int(argument) for argument in sys.argv[1:])
    settings = _receive(0)
    die_with_parent(parent, 0, close_logging)
    configure_logging(settings.telemetry.log_format, settings.telemetry.log_level)

    from gateway.app import Application

    sock = socket.socket(fileno=listener)
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
