"""Large blocks go back to the system when they are freed, also after others have been."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

# A block of 16 MB that was freed makes glibc serve the next of 8 MB from an arena, which it does not give back.
_PROGRAM = """
import ctypes
from local_engine.allocator import give_back_large_blocks

class Figures(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")]

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
libc.mallinfo2.restype = Figures
{call}
libc.free(libc.malloc(16 << 20))
before = libc.mallinfo2().hblks
block = libc.malloc(8 << 20)
print(libc.mallinfo2().hblks - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries never put large blocks in arenas")
@pytest.mark.parametrize(("call", "blocks_of_their_own"), [("", 0), ("give_back_large_blocks()", 1)])
def test_a_large_block_is_mapped_by_itself_whatever_was_freed_before(call: str, blocks_of_their_own: int) -> None:
    run = subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(call=call)], capture_output=True, text=True, timeout=60, check=True
    )

    assert int(run.stdout) == blocks_of_their_own


def test_it_can_be_called_anywhere() -> None:
    program = "from local_engine.allocator import give_back_large_blocks; give_back_large_blocks()"

    subprocess.run([sys.executable, "-c", program], timeout=60, check=True)
