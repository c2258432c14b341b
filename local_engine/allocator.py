"""How the C library serves the engine's large blocks of memory: the states of prompts, several MB each.

glibc maps a large block by itself, and gives it back when it is freed; but after the first that is freed it takes
blocks up to that size from its arenas, where what comes and goes leaves gaps. Measured with xllamacpp 2026.10 and a
cache of 32 MiB under clients that leave (2026-11-30): arenas of 75 MB after three minutes, growing in steps of up to
10 MB within the hour. With the bound held at 1 MiB there are 31 MB in the arenas, and 31 MB more in blocks of their
own.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Final

LARGE_BYTES: Final = 1 << 20
_M_MMAP_THRESHOLD: Final = -3  # of glibc's malloc.h


def give_back_large_blocks() -> None:
    """From now on a block of `LARGE_BYTES` or more goes back to the system when it is freed. With glibc only."""
    if sys.platform == "linux":
        # musl has no such function, and no need of one.
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is not None:
            mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES)
