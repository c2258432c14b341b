"""A machine on which the native library does not load, played by a module of its name that fails like it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from local_engine.engine import LocalEngine
from local_engine.errors import EngineDownError, LibraryMissingError
from local_engine.options import EngineConfig
from local_engine.state import EngineState
from local_engine.supervisor import library_version

NO_LIBGOMP = 'raise ImportError("libgomp.so.1: cannot open shared object file: No such file or directory")'
NO_PACKAGE = 'raise ModuleNotFoundError("No module named \'xllamacpp\'", name="xllamacpp")'
BROKEN = 'raise ImportError("undefined symbol: zzz")'


@pytest.fixture
def replace_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path / "xllamacpp.py"


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (NO_LIBGOMP, r"install libgomp1 \(Debian, Ubuntu\) or libgomp \(Fedora, Alpine\)"),
        (NO_PACKAGE, "xllamacpp is not installed"),
        (BROKEN, "undefined symbol: zzz"),
        ("import os; os.abort()", "SIGABRT"),
    ],
    ids=["libgomp", "package", "broken", "crash"],
)
async def test_a_library_that_does_not_load_says_what_helps(replace_library: Path, code: str, advice: str) -> None:
    replace_library.write_text(code)

    with pytest.raises(LibraryMissingError, match=advice):
        await library_version()


async def test_whoever_gives_up_on_a_library_that_takes_for_ever_leaves_no_process_behind(
    replace_library: Path, tmp_path: Path
) -> None:
    told = tmp_path / "pid"
    replace_library.write_text(
        f"import os, time\nopen({str(told)!r}, 'w').write(str(os.getpid()) + '.')\ntime.sleep(600)"
    )
    asking = asyncio.create_task(library_version())
    while not told.exists() or not told.read_text().endswith("."):
        await asyncio.sleep(0.01)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking

    with pytest.raises(ProcessLookupError):
        os.kill(int(told.read_text()[:-1]), 0)


async def test_an_engine_without_its_library_fails_at_once_with_the_package_to_install(
    replace_library: Path, tmp_path: Path
) -> None:
    replace_library.write_text(NO_LIBGOMP)
    model = tmp_path / "m.gguf"
    model.write_bytes(b"GGUF\x03\0\0\0" + bytes(2000))
    engine = LocalEngine(EngineConfig(model=str(model)))
    await engine.start()
    try:
        with pytest.raises(EngineDownError, match="install libgomp1"):
            await engine.wait_ready(30)
        assert engine.state is EngineState.FAILED
    finally:
        await engine.stop()
