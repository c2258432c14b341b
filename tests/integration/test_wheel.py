"""The built wheel, installed where the checkout cannot be imported: the command works and its data came along."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway.__about__ import __version__

CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Installation:
    """An environment with the wheel in it, and a working directory outside the checkout."""

    python: Path
    home: Path

    def run(self, *command: str, **variables: str) -> str:
        """Run *command* with nothing but *variables* in its environment; its standard output. Fails when it fails."""
        environment = {"PATH": f"{self.python.parent}:/usr/bin:/bin", "HOME": str(self.home), **variables}
        return _run(command, cwd=self.home, environment=environment)


def _run(command: tuple[str, ...], *, cwd: Path, environment: Mapping[str, str] | None = None) -> str:
    run = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert run.returncode == 0, f"{' '.join(command)}\n{run.stdout}\n{run.stderr}"
    return run.stdout


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The source distribution, and the wheel built from it."""
    out = tmp_path_factory.mktemp("dist")
    _run((sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(CHECKOUT)), cwd=out)
    (sdist,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    return sdist, wheel


@pytest.fixture(scope="module")
def installation(archives: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Installation:
    home = tmp_path_factory.mktemp("user")
    _run((sys.executable, "-m", "venv", "--without-pip", "venv"), cwd=home)
    python = home / "venv" / "bin" / "python"
    uv = shutil.which("uv")
    installer = (
        (uv, "pip", "install", "--offline", "--python", str(python))
        if uv
        else (sys.executable, "-m", "pip", "--python", str(python), "install", "--no-index")
    )
    _run((*installer, "--no-deps", str(archives[1])), cwd=home)
    # The requirements are lent from this environment, which has exactly the pinned ones: a path in a .pth file is
    # searched for packages, but the .pth files there (one of them leads to the checkout) are not read.
    folder = _run((str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"), cwd=home).strip()
    Path(folder, "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return Installation(python, home)


def test_the_wheel_holds_the_four_packages_and_nothing_else_at_the_top(archives: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(archives[1]) as wheel:
        names = wheel.namelist()

    top = {name.partition("/")[0] for name in names}
    assert top == {"gateway", "policies", "adapters", "local_engine", f"switchgear-{__version__}.dist-info"}
    assert not [name for name in names if "__pycache__" in name or name.endswith(".db")]
    assert f"switchgear-{__version__}.dist-info/licenses/LICENSE" in names


def test_every_data_file_of_the_checkout_is_in_the_wheel(archives: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(archives[1]) as wheel:
        names = set(wheel.namelist())

    providers = {f"adapters/providers/{path.name}" for path in (CHECKOUT / "adapters/providers").glob("*.yaml")}
    migrations = {
        f"gateway/_data/{path.relative_to(CHECKOUT)}"
        for path in (CHECKOUT / "migrations").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert providers
    assert migrations
    assert providers | migrations | {"gateway/_data/config.example.yaml", "gateway/py.typed"} <= names


def test_the_source_distribution_can_be_tested(archives: tuple[Path, Path]) -> None:
    with tarfile.open(archives[0]) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}

    assert {
        "LICENSE",
        "README.md",
        "pyproject.toml",
        "requirements/dev.txt",
        "scripts/test",
        "scripts/install",
    } <= names
    assert "tests/integration/test_wheel.py" in names


def test_the_installed_packages_are_not_the_checkout(installation: Installation) -> None:
    for name in ("gateway", "policies", "adapters", "local_engine"):
        place = installation.run("python", "-c", f"import {name}; print({name}.__file__)")

        assert Path(place).is_relative_to(installation.home)


def test_the_command_knows_its_version(installation: Installation) -> None:
    assert __version__ in installation.run("gateway", "--version")
    assert __version__ in installation.run("python", "-m", "gateway", "--version")


def test_the_schema_of_the_configuration_is_json(installation: Installation) -> None:
    assert "properties" in json.loads(installation.run("gateway", "config", "schema"))


def test_a_configuration_is_written_checked_and_its_database_made(installation: Installation) -> None:
    database = installation.home / "made.db"
    url = f"sqlite+aiosqlite:///{database}"

    installation.run("gateway", "init", "-o", "config.yaml")
    installation.run("gateway", "check", "-c", "config.yaml", GATEWAY_DATABASE_URL=url)
    installation.run("gateway", "db", "upgrade", GATEWAY_DATABASE_URL=url)

    with sqlite3.connect(database) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    connection.close()
    assert "alembic_version" in tables
    assert len(tables) > 1
