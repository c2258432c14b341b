"""What the code imports, pyproject.toml declares and requirements/*.txt pins are the same set."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
PACKAGES = ("gateway", "policies", "adapters", "local_engine")

# Declared, and used without an import statement of ours.
LOADED_BY_NAME = {
    "aiosqlite": "SQLAlchemy loads it for sqlite+aiosqlite URLs",
    "asyncpg": "SQLAlchemy loads it for postgresql+asyncpg URLs",
    "uvloop": "uvicorn loads it when it is there",
}

# Imported, and declared by way of the distribution whose public interface they are part of.
PART_OF = {"pydantic-core": "pydantic", "starlette": "fastapi"}


def name_of(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def imported_names(*folders: str) -> Iterator[str]:
    for folder in folders:
        for path in (CHECKOUT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Import):
                    yield from (alias.name.partition(".")[0] for alias in node.names)
                elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                    yield node.module.partition(".")[0]


def imported_distributions(*folders: str) -> set[str]:
    owners = packages_distributions()
    ours = {*PACKAGES, "benchmarks", "tests", *(path.stem for path in (CHECKOUT / "tests").rglob("*.py"))}
    foreign = set(imported_names(*folders)) - set(sys.stdlib_module_names) - ours
    found = {name_of(owner) for name in foreign for owner in owners.get(name, [f"unknown-{name}"])}
    return {PART_OF.get(name, name) for name in found}


def declared() -> set[str]:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    return {name_of(requirement) for requirement in project["dependencies"]}


def declared_for_developers() -> set[str]:
    groups = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["dependency-groups"]
    return {name_of(requirement) for requirement in groups["dev"]}


def pins(name: str) -> dict[str, str]:
    """The entries of a requirements file by distribution."""
    text = (CHECKOUT / "requirements" / name).read_text()
    return {name_of(entry): entry for entry in re.split(r"\n(?=\S)", text.strip())}


def test_everything_imported_is_declared() -> None:
    assert imported_distributions(*PACKAGES, "migrations") - declared() == set()


def test_everything_declared_is_used() -> None:
    assert declared() - imported_distributions(*PACKAGES, "migrations") - set(LOADED_BY_NAME) == set()


def test_everything_the_tests_import_is_declared() -> None:
    # tests/reports answers to suites from outside, whose own modules it imports when they load it.
    folders = [str(path.relative_to(CHECKOUT)) for path in (CHECKOUT / "tests").iterdir() if path.name != "reports"]

    assert imported_distributions(*folders) - declared() - declared_for_developers() == set()


def test_everything_declared_is_pinned() -> None:
    assert declared() - set(pins("runtime.txt")) == set()


def test_the_developers_pins_contain_the_runtime_ones() -> None:
    runtime, dev = pins("runtime.txt"), pins("dev.txt")

    # Markers may be wider there: a developer's tool can need the same package on more systems.
    assert {name: dev[name].split()[0] for name in runtime} == {name: runtime[name].split()[0] for name in runtime}


JUDGES = sorted(f"judges/{path.name}" for path in (CHECKOUT / "requirements" / "judges").glob("*.txt"))


@pytest.mark.parametrize("name", ["runtime.txt", "dev.txt", "build.txt", *JUDGES])
def test_a_pin_is_an_exact_version_with_hashes_and_no_address(name: str) -> None:
    for entry in pins(name).values():
        first, *hashes = entry.split("\\\n")
        assert re.fullmatch(r"[a-z0-9._-]+==\S+( ; .+)? ?", first), first
        assert hashes
        assert all(re.fullmatch(r"\s*--hash=sha256:[0-9a-f]{64}\s*", line) for line in hashes), entry
