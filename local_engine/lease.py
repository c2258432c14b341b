"""Lets processes use an engine that another one owns, so that it is not unloaded under their requests.

Whoever has requests in the engine holds a shared lock on a file beside its socket; the owner unloads the model only
while it holds that lock alone. The system gives a lock back when its holder dies. Whoever finds the model unloaded
rings a bell, a datagram socket beside the file, at which the owner loads it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
import weakref
from collections.abc import Callable
from pathlib import Path

if sys.platform == "win32":
    # There are no several workers there, so nobody to share an engine with.
    def _lock(descriptor: int, *, alone: bool) -> bool:
        return True

    def _unlock(descriptor: int) -> None:
        """Nothing was locked."""

else:
    import fcntl

    def _lock(descriptor: int, *, alone: bool) -> bool:
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


class Lease:
    """One process's hold on the file at *path*, which is made when missing."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        self._finalizer = weakref.finalize(self, os.close, self._descriptor)

    def share(self) -> bool:
        """Take it beside others, if nobody has it alone."""
        return _lock(self._descriptor, alone=False)

    def take_alone(self) -> bool:
        """Take it, if nobody else has it."""
        return _lock(self._descriptor, alone=True)

    def give_back(self) -> None:
        """Let go, and leave the time of it in the file."""
        os.utime(self._descriptor)
        _unlock(self._descriptor)

    @property
    def last_used_ns(self) -> int:
        """When anybody last gave it back, by the clock on the wall."""
        return os.fstat(self._descriptor).st_mtime_ns

    def close(self) -> None:
        """Let go, whatever is held; otherwise that happens when nobody refers to this object any more."""
        self._finalizer()


class Bell:
    """Calls *heard* in this process when another one rings at *path*."""

    def __init__(self, path: Path, heard: Callable[[], None]) -> None:
        self._path = path
        self._heard = heard
        self._loop = asyncio.get_running_loop()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind(str(path))
        self._loop.add_reader(self._socket, self._read)

    def _read(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._socket.recv(16):
                pass
        self._heard()

    def close(self) -> None:
        self._loop.remove_reader(self._socket)
        self._socket.close()
        self._path.unlink(missing_ok=True)


def ring(path: Path) -> None:
    """Ring the bell at *path*. One that is not heard is rung again by whoever still waits."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        with contextlib.suppress(OSError):
            sender.sendto(b"!", str(path))
