"""Ties the life of a child to its parent's, however the parent ends."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1


def die_with_parent(
    parent_pid: int, pipe: int, clean_up: Callable[[], None], heard: Callable[[bytes], object] = len
) -> None:
    """End this process when its parent does, even when that is killed.

    Two ways, as neither is enough. A thread waits for the end of *pipe*, whose other end only the parent holds:
    that works everywhere and can *clean_up*, but not while native code holds the interpreter (as loading a model
    does). The kernel's death signal works then too, but only on Linux. What comes through *pipe* meanwhile is *heard*,
    in that thread.
    """
    die_when_parent_does()
    if sys.platform == "linux" and os.getppid() != parent_pid:  # it died before the call
        os._exit(1)

    def wait() -> None:
        # Not through a buffered file: its lock, held by this thread, would make the interpreter abort at its end.
        while data := os.read(pipe, 65536):
            heard(data)
        clean_up()
        os._exit(1)

    threading.Thread(target=wait, name="lifeline", daemon=True).start()


def die_when_parent_does() -> None:
    """Have the kernel kill this process when its parent dies; it holds for a program this one becomes. Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
