"""Whether the library is there is found without importing it, and a compromised release is refused."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

from gateway.bridge.errors import BridgeMissingError
from gateway.bridge.installed import COMPROMISED, require_library

CHECKOUT = Path(__file__).resolve().parents[3]


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the path where packages can be put."""
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def put(packages: Path, version: str) -> None:
    (packages / "litellm").mkdir()
    (packages / "litellm" / "__init__.py").write_text("raise AssertionError('imported')")
    about = packages / f"litellm-{version}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: litellm\nVersion: {version}\n")


def test_without_bridges_nothing_is_needed() -> None:
    require_library([])


def test_a_missing_library_is_told_with_its_provider_and_the_way_to_install_it() -> None:
    with pytest.raises(BridgeMissingError, match=r"claude.*pip install 'switchgear\[litellm\]'"):
        require_library(["claude"])


def test_a_library_that_is_there_is_not_imported(packages: Path) -> None:
    put(packages, "1.110.2")

    require_library(["claude"])

    assert "litellm" not in sys.modules


@pytest.mark.parametrize("version", sorted(COMPROMISED))
def test_a_compromised_release_is_refused(packages: Path, version: str) -> None:
    put(packages, version)

    with pytest.raises(BridgeMissingError, match="malicious"):
        require_library(["claude"])


def test_the_extra_excludes_the_compromised_releases() -> None:
    extras = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["optional-dependencies"]

    (requirement,) = extras["litellm"]
    assert {f"!={version}" for version in COMPROMISED} <= set(requirement.removeprefix("litellm").split(","))
