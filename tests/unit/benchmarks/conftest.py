"""The benchmark's own programs, compiled once, and a mock upstream."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.answers import scripts, write_scripts
from benchmarks.workshop import MissingToolError, compile_tool, running_mock


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the mock, the load and the scripts in it."""
    folder = tmp_path_factory.mktemp("benchmarks")
    try:
        compile_tool("mock", folder, "ssl", "crypto")
        compile_tool("load", folder)
    except MissingToolError as missing:
        pytest.skip(str(missing))
    write_scripts(folder / "scripts", scripts())
    return folder


@pytest.fixture(scope="session")
def mock_port(workshop: Path) -> Iterator[int]:
    with running_mock(workshop / "mock", workshop, os.sched_getaffinity(0)) as port:
        yield port
