from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHILD = """
import os, sys, time
from pathlib import Path
from local_engine.lifeline import die_with_parent

die_with_parent({parent}, 0, Path(sys.argv[1]).unlink)
print("tied", os.getpid(), flush=True)
time.sleep(60)
"""


def test_the_end_of_the_pipe_ends_the_process_after_cleaning_up(tmp_path: Path) -> None:
    litter = tmp_path / "engine.sock"
    litter.touch()
    code = CHILD.format(parent=os.getpid())
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(litter)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path.cwd()
    )
    with child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdout.readline()

        child.stdin.close()

        assert child.wait(20) == 1
    assert not litter.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's death signal")
def test_the_process_dies_with_its_parent_even_if_the_pipe_stays_open(tmp_path: Path) -> None:
    code = CHILD.format(parent="os.getppid()")
    parent_code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}, {str(tmp_path)!r}])"
    read_end, write_end = os.pipe()
    parent = subprocess.Popen(
        [sys.executable, "-c", parent_code], stdin=read_end, stdout=subprocess.PIPE, cwd=Path.cwd()
    )
    with parent:
        assert parent.stdout is not None
        parent.stdout.readline()

        parent.kill()

        # The child holds the other end of this pipe: its end is the child's.
        assert parent.stdout.read() == b""
    os.close(read_end)
    os.close(write_end)
