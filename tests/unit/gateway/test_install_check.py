"""The check for other distributions under our import names, on real folders and in a real interpreter."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.install_check import IMPORT_NAMES, check_installation

CHECKOUT = Path(__file__).resolve().parents[3]

CHECK = """
from gateway.install_check import NameCollisionError, check_installation
try:
    check_installation()
except NameCollisionError as error:
    print(error)
"""


def install(site: Path, distribution: str, package: str, *, record: bool = True) -> None:
    """Lay *distribution* out in *site* as an installer does: its package, and its metadata if *record*."""
    module = site / package / f"{distribution}_part.py"
    module.parent.mkdir(parents=True, exist_ok=True)
    module.write_text("")
    (module.parent / "__init__.py").touch()
    if record:
        metadata = site / f"{distribution}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        (metadata / "RECORD").write_text(f"{package}/__init__.py,,\n{package}/{module.name},,\n")


def install_ourselves(site: Path) -> None:
    for name in IMPORT_NAMES:
        shutil.copytree(CHECKOUT / name, site / name, ignore=shutil.ignore_patterns("__pycache__"))
        (site / "switchgear-0.1.0.dist-info").mkdir(exist_ok=True)
    (site / "switchgear-0.1.0.dist-info" / "RECORD").write_text("gateway/__init__.py,,\npolicies/__init__.py,,\n")


def complaint(*path: Path) -> str:
    """What the check says in a fresh interpreter that looks for packages in *path* alone; empty when it is content."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))}
    # -S leaves out the environment's own packages, through which a checkout may be found.
    command = [sys.executable, "-S", "-P", "-c", CHECK]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
    return run.stdout.strip()


def test_the_checkout_is_accepted() -> None:
    check_installation()


def test_an_installation_of_our_own_is_accepted(tmp_path: Path) -> None:
    install_ourselves(tmp_path)

    assert complaint(tmp_path) == ""


@pytest.mark.parametrize("package", IMPORT_NAMES[1:])
def test_a_distribution_found_before_ours_is_named(package: str, tmp_path: Path) -> None:
    install(tmp_path, "acme_tools", package)

    told = complaint(tmp_path, CHECKOUT)

    assert f"holds acme_tools, with a package '{package}'" in told
    assert "pip uninstall acme_tools" in told


@pytest.mark.parametrize("package", IMPORT_NAMES)
def test_a_distribution_installed_over_ours_is_named(package: str, tmp_path: Path) -> None:
    install_ourselves(tmp_path)
    install(tmp_path, "acme_tools", package)

    told = complaint(tmp_path)

    assert f"holds acme_tools, with a package '{package}'" in told


def test_a_stray_folder_is_named_by_its_path(tmp_path: Path) -> None:
    install(tmp_path, "acme_tools", "policies", record=False)

    told = complaint(tmp_path, CHECKOUT)

    assert f"loads {tmp_path / 'policies'} instead of" in told
    assert "PYTHONPATH" in told


def test_a_missing_package_is_told(tmp_path: Path) -> None:
    install_ourselves(tmp_path)
    shutil.rmtree(tmp_path / "local_engine")

    assert "the package 'local_engine' is missing" in complaint(tmp_path)
