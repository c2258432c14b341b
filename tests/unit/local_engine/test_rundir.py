from __future__ import annotations

import stat
from pathlib import Path

import pytest

from local_engine.rundir import RunDirectory


@pytest.fixture
def base(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path_factory.mktemp("r")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(path))
    return path


def test_a_directory_is_private_and_goes_when_removed(base: Path) -> None:
    directory = RunDirectory()
    assert directory.path.parent == base
    assert stat.S_IMODE(directory.path.stat().st_mode) == 0o700

    directory.remove()

    assert not directory.path.exists()


def test_a_directory_in_use_is_left_alone_and_an_abandoned_one_removed(base: Path) -> None:
    in_use = RunDirectory()
    abandoned = base / "switchgear-old"
    abandoned.mkdir()
    (abandoned / "lock").touch()
    (abandoned / "engine.sock").touch()
    not_ours = base / "switchgear-notes"
    not_ours.mkdir()

    RunDirectory().remove()

    assert in_use.path.exists()
    assert not abandoned.exists()
    assert not_ours.exists()
    in_use.remove()


def test_a_runtime_directory_too_deep_for_sockets_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(deep))

    directory = RunDirectory()

    assert len(directory.socket_path("engine")) < 104
    directory.remove()
