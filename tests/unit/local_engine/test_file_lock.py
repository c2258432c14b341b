from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from local_engine.filelock import FileLock, LockedError

HOLDER = """
import sys
from pathlib import Path
from local_engine.filelock import FileLock

FileLock(Path(sys.argv[1])).acquire()
print("held", flush=True)
sys.stdin.read()
"""


def test_a_lock_is_held_by_one(tmp_path: Path) -> None:
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    first.acquire()
    with pytest.raises(LockedError):
        second.acquire()

    first.release()

    second.acquire()
    second.release()


def test_a_lock_is_free_when_its_holder_was_killed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path.cwd()
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(LockedError):
            FileLock(path).acquire()
        holder.kill()

    with FileLock(path).holding():
        pass
