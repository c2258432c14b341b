"""Which uv or pip is asked for a wheel."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from local_engine.errors import PullError
from local_engine.wheel_index import fetch_wheel, find_wheel
from tests.fakes.package_index import PackageIndex

NAME = "tiny_model-1.0-py3-none-any.whl"


@pytest.fixture
def no_installer_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An environment made by ``venv --without-pip``, on a machine without uv."""
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pip" else find_spec(name))
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.fixture
def python_with_pip() -> str:
    for python in (str(getattr(sys, "_base_executable", sys.executable)), sys.executable):
        if subprocess.run([python, "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0:
            return python
    pytest.skip("neither the environment nor the Python it was made from has a pip")


@pytest.mark.usefixtures("no_installer_of_its_own")
def test_the_python_that_an_environment_was_made_from_lends_its_pip(
    package_index: PackageIndex, python_with_pip: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "executable", "/environment/bin/python")
    monkeypatch.setattr(sys, "_base_executable", python_with_pip)

    fetch_wheel("tiny-model==1.0", tmp_path)

    assert find_wheel("tiny-model==1.0", NAME).partition("#")[0] == package_index.wheel_url
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


@pytest.mark.usefixtures("no_installer_of_its_own")
def test_a_pip_in_the_folder_one_happens_to_be_in_is_not_run(
    package_index: PackageIndex, python_with_pip: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "executable", "/environment/bin/python")
    monkeypatch.setattr(sys, "_base_executable", python_with_pip)
    here = tmp_path / "here"
    here.mkdir()
    (here / "pip.py").write_text("raise SystemExit('some other pip')")
    monkeypatch.chdir(here)

    assert find_wheel("tiny-model==1.0", NAME).partition("#")[0] == package_index.wheel_url


@pytest.mark.usefixtures("no_installer_of_its_own")
@pytest.mark.parametrize("base", ["/nowhere/python", "/bin/false"])
def test_without_any_the_message_says_what_to_install(base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "_base_executable", base)

    with pytest.raises(PullError, match="neither uv nor pip is available to this Python: install one of them"):
        find_wheel("tiny-model==1.0", NAME)
