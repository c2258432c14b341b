"""Private directories for sockets, and the removal of those that killed processes left behind."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

from local_engine.filelock import FileLock, LockedError

# Linux takes 107 bytes for a socket's path, macOS 103.
_LONGEST_SOCKET_PATH = 103
_PREFIX = "switchgear-"
_LOCK_NAME = "lock"


class RunDirectory:
    """A new directory that only this user may enter, short enough to hold sockets.

    It is locked for as long as this object and its process live, so that any later process can tell what is litter.
    """

    def __init__(self) -> None:
        base = _base()
        _sweep(base)
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))  # made with mode 0700
            self._lock = FileLock(self.path / _LOCK_NAME)
            # A process that sweeps at this very moment takes a lock not yet held for litter.
            with contextlib.suppress(LockedError):
                self._lock.acquire()
                if (self.path / _LOCK_NAME).exists():
                    return

    def socket_path(self, name: str) -> str:
        return str(self.path / f"{name}.sock")

    def remove(self) -> None:
        self._lock.release()
        shutil.rmtree(self.path, ignore_errors=True)


def _base() -> Path:
    for candidate in (os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp"):  # noqa: S108 - the last is short
        if candidate and len(candidate) + 40 <= _LONGEST_SOCKET_PATH and os.access(candidate, os.W_OK):
            return Path(candidate)
    raise OSError("no writable directory with a path short enough for a unix socket: set TMPDIR to a short one")


def _sweep(base: Path) -> None:
    for directory in base.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # in use, somebody else's, or removed by another process just now
            lock_file = directory / _LOCK_NAME
            if directory.stat().st_uid == os.getuid() and lock_file.is_file():
                with FileLock(lock_file).holding():
                    shutil.rmtree(directory, ignore_errors=True)
