"""Nothing of an engine is left when its parent is gone, however that went."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_engine.registry import DEFAULT_MODEL
from local_engine.rundir import RunDirectory

PARENT = """
import asyncio, os
from local_engine.engine import LocalEngine
from local_engine.options import EngineConfig

async def main():
    engine = LocalEngine(EngineConfig(model={model!r}, context=512, slots=1, cache_ram_mib=16))
    await engine.start()
    {wait}
    print(engine.pid, engine.socket_path, flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""
WAIT_READY = "await engine.wait_ready(60)"
WAIT_STARTED = "\n    ".join(("while engine.pid is None:", "    await asyncio.sleep(0.001)"))


@pytest.fixture
def parents() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for parent in started:
        parent.kill()
        parent.communicate()


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder with a path that leaves room for a socket's name."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def start_parent(parents: list[subprocess.Popen[str]], wait: str) -> tuple[subprocess.Popen[str], int, Path]:
    """A process with an engine; itself, the engine's process and its socket."""
    code = PARENT.format(model=DEFAULT_MODEL, wait=wait)
    parent = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    parents.append(parent)
    assert parent.stdout is not None
    pid, socket_path = parent.stdout.readline().split()
    return parent, int(pid), Path(socket_path)


def assert_gone(pid: int, within_seconds: float = 10.0) -> None:
    give_up_at = time.monotonic() + within_seconds
    while time.monotonic() < give_up_at:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):  # gone before the file was opened, or read
            return
        if state == "Z":  # dead, and not yet collected by whoever inherited it
            return
        time.sleep(0.05)
    pytest.fail(f"the engine's process {pid} outlived its parent")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.usefixtures("model_file")
@pytest.mark.parametrize("wait", [WAIT_READY, WAIT_STARTED], ids=["ready", "loading"])
def test_an_engine_dies_with_a_killed_parent(parents: list[subprocess.Popen[str]], wait: str) -> None:
    parent, pid, _ = start_parent(parents, wait)

    parent.send_signal(signal.SIGKILL)

    assert_gone(pid)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.usefixtures("model_file")
def test_the_directory_of_a_killed_parent_is_removed_by_the_next(
    parents: list[subprocess.Popen[str]], short_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A place of its own: any other gateway that starts meanwhile would tidy up as well.
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short_folder))
    parent, pid, socket_path = start_parent(parents, WAIT_READY)
    parent.kill()
    parent.wait()
    assert_gone(pid)
    assert socket_path.parent.exists()

    RunDirectory().remove()

    assert not socket_path.parent.exists()
