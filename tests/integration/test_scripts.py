"""scripts/install, run on a small project with one pinned package that lies in a folder."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
TOOLS = ("sh", "env", "dirname", "cat", "cmp", "grep", "chmod", "mv", "rm", "ln", "readlink", "sleep")


@dataclass(frozen=True, slots=True)
class Project:
    """A checkout with scripts/install, an index of wheels beside it, and a PATH with nothing but what we put there."""

    root: Path
    wheels: Path
    programs: Path

    def install(self, want: str = "runtime") -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": str(self.programs),
            "HOME": str(self.root),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.wheels),
        }
        command = [str(self.root / "scripts" / "install"), want]
        return subprocess.run(
            command, env=environment, cwd="/", capture_output=True, text=True, timeout=100, check=False
        )

    def pin(self, version: str, *, digest: str | None = None) -> None:
        """Make a wheel of *version* and pin it, with a *digest* that need not be right."""
        wheel = self.wheels / f"sample-{version}-py3-none-any.whl"
        metadata = f"sample-{version}.dist-info"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr("sample.py", f"version = {version!r}\n")
            archive.writestr(f"{metadata}/METADATA", f"Metadata-Version: 2.1\nName: sample\nVersion: {version}\n")
            archive.writestr(f"{metadata}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            archive.writestr(f"{metadata}/RECORD", "")
        digest = digest or hashlib.sha256(wheel.read_bytes()).hexdigest()
        pins = f"sample=={version} \\\n    --hash=sha256:{digest}\n"
        for name in ("runtime.txt", "dev.txt"):
            (self.root / "requirements" / name).write_text(pins)

    def installed_version(self) -> str:
        python = self.root / ".venv" / "bin" / "python"
        run = subprocess.run(
            [str(python), "-c", "import sample; print(sample.version)"], capture_output=True, text=True, check=True
        )
        return run.stdout.strip()


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    root = tmp_path_factory.mktemp("project")
    made = Project(root / "a checkout", root / "wheels", root / "bin")
    for folder in (made.root / "scripts", made.root / "requirements", made.wheels, made.programs):
        folder.mkdir(parents=True)
    shutil.copy(CHECKOUT / "scripts" / "install", made.root / "scripts")
    for tool in TOOLS:
        (made.programs / tool).symlink_to(shutil.which(tool) or tool)
    # The interpreter below a virtual environment, as a user would have it.
    (made.programs / "python3").symlink_to(Path(sys.executable).resolve())
    made.pin("1.0")
    return made


@pytest.fixture
def ready(project: Project) -> Project:
    """The project with version 1.0 installed."""
    project.pin("1.0")
    run = project.install()
    assert run.returncode == 0, run.stderr
    return project


def test_the_pinned_package_is_installed(ready: Project) -> None:
    assert ready.installed_version() == "1.0"


def test_the_checkout_can_be_imported_from_anywhere(ready: Project) -> None:
    (ready.root / "gateway.py").write_text("print('found')")

    run = subprocess.run([str(ready.root / ".venv/bin/gateway")], cwd="/", capture_output=True, text=True, check=True)

    assert run.stdout == "found\n"


def test_a_second_run_needs_no_installer(ready: Project) -> None:
    run = ready.install()

    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_changed_pins_are_installed(ready: Project) -> None:
    ready.pin("2.0")

    assert ready.install().returncode == 0
    assert ready.installed_version() == "2.0"


def test_the_developers_packages_serve_for_running(ready: Project) -> None:
    assert ready.install("dev").returncode == 0

    assert ready.install("runtime").stderr == ""


def test_a_wrong_hash_stops_the_installation_and_is_not_forgotten(ready: Project) -> None:
    ready.pin("3.0", digest="0" * 64)

    first, second = ready.install(), ready.install()

    for run in (first, second):
        assert run.returncode != 0
        assert "hash" in run.stderr.lower()
        assert "pip could not install the packages" in run.stderr
    assert ready.installed_version() != "3.0"


def test_a_damaged_environment_is_made_anew(ready: Project) -> None:
    (ready.root / ".venv/bin/python").unlink()

    run = ready.install()

    assert run.returncode == 0, run.stderr
    assert ready.installed_version() == "1.0"


def test_a_lock_left_by_a_crash_does_not_stop_anybody(ready: Project) -> None:
    ready.pin("1.5")
    gone = subprocess.Popen(["true"])
    gone.wait()
    (ready.root / ".venv.lock").symlink_to(str(gone.pid))

    assert ready.install().returncode == 0
    assert not (ready.root / ".venv.lock").is_symlink()


def test_installations_side_by_side_wait_for_each_other(ready: Project) -> None:
    ready.pin("1.7")
    (ready.root / ".venv.lock").symlink_to(str(os.getpid()))
    environment = {"PATH": str(ready.programs), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(ready.wheels)}
    command = [str(ready.root / "scripts/install"), "runtime"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as waiting:
        assert waiting.stderr is not None
        assert f"Waiting for the installation that process {os.getpid()}" in waiting.stderr.readline()
        assert ready.installed_version() != "1.7"
        (ready.root / ".venv.lock").unlink()
        waiting.communicate(timeout=100)

    assert waiting.returncode == 0
    assert ready.installed_version() == "1.7"


@pytest.mark.parametrize(
    ("python", "expected"),
    [("", "there is no python3"), ('[ "$1" = --version ] && echo Python 3.9.18', "there is Python 3.9.18")],
    ids=["none", "too old"],
)
def test_without_a_suitable_python_the_message_says_what_is_needed(
    project: Project, tmp_path: Path, python: str, expected: str
) -> None:
    checkout = shutil.copytree(project.root, tmp_path / "checkout", ignore=shutil.ignore_patterns(".venv"))
    programs = shutil.copytree(project.programs, tmp_path / "bin", symlinks=True)
    (programs / "python3").unlink()
    if python:
        (programs / "python3").write_text(f"#!/bin/sh\n{python}\n")
        (programs / "python3").chmod(0o755)

    run = Project(checkout, project.wheels, programs).install()

    assert run.returncode == 1
    assert "Python 3.11 or newer is needed" in run.stderr
    assert expected in run.stderr
    assert not (checkout / ".venv").exists()


def test_a_python_without_venv_is_told_with_the_package_to_install(project: Project, tmp_path: Path) -> None:
    checkout = shutil.copytree(project.root, tmp_path / "checkout", ignore=shutil.ignore_patterns(".venv"))
    programs = shutil.copytree(project.programs, tmp_path / "bin", symlinks=True)
    real = (programs / "python3").resolve()
    (programs / "python3").unlink()
    (programs / "python3").write_text(
        f'#!/bin/sh\ncase "$*" in *venv*) echo "ensurepip is not available"; exit 1 ;; esac\nexec {real} "$@"\n'
    )
    (programs / "python3").chmod(0o755)

    run = Project(checkout, project.wheels, programs).install()

    assert run.returncode == 1
    assert "ensurepip is not available" in run.stderr
    assert "apt install python3-venv" in run.stderr
