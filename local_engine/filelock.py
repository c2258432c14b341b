"""A lock between processes, held on a file; the system gives it back when its holder dies."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class LockedError(OSError):
    """Another process holds the lock."""


class FileLock:
    """The lock of one file, which is made when missing and stays when released."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock, or raise `LockedError` at once."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _lock(descriptor)
        except OSError as error:
            os.close(descriptor)
            raise LockedError(f"{self._path} is locked by another process") from error
        self._descriptor = descriptor

    def release(self) -> None:
        """Give the lock back; without effect when it is not held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    @contextmanager
    def holding(self) -> Iterator[None]:
        self.acquire()
        try:
            yield
        finally:
            self.release()


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
