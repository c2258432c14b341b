"""Refuses to start when another distribution shares one of our import names: code of two projects would mix."""

from __future__ import annotations

from importlib.metadata import packages_distributions
from importlib.util import find_spec
from pathlib import Path

from gateway.__about__ import DISTRIBUTION

IMPORT_NAMES = ("gateway", "policies", "adapters", "local_engine")

_HOME = Path(__file__).resolve().parent.parent


class NameCollisionError(Exception):
    """One of our import names belongs to somebody else too; the message names them and says what helps."""


def check_installation() -> None:
    """Raise `NameCollisionError` unless our four packages are ours alone; takes some 10 ms in a full environment."""
    for name in IMPORT_NAMES:
        found = _location(name)
        if found != _HOME / name:
            raise NameCollisionError(_explain_other_place(name, found))
    # Installers write over files of the same name without a word, so the right place may still hold the wrong code.
    for record in sorted(_HOME.glob("*.dist-info/RECORD")):
        owner = record.parent.name.partition("-")[0]
        if owner == DISTRIBUTION:
            continue
        files = b"\n" + record.read_bytes()
        for name in IMPORT_NAMES:
            if b"\n%b/" % name.encode() in files:
                raise NameCollisionError(_explain_owner(name, owner))


def _location(name: str) -> Path | None:
    """The folder or file that ``import name`` loads; None when nothing does."""
    spec = find_spec(name)
    if spec is None:
        return None
    if spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations))).resolve()
    return Path(spec.origin).resolve() if spec.origin else None


def _explain_other_place(name: str, found: Path | None) -> str:
    if found is None:
        return f"the package '{name}' is missing from {_HOME}; install {DISTRIBUTION} again"
    owners = sorted(set(packages_distributions().get(name, ())) - {DISTRIBUTION})
    if owners:
        return _explain_owner(name, *owners)
    return (
        f"'import {name}' loads {found} instead of the package in {_HOME}; "
        f"rename it, or take its folder out of PYTHONPATH"
    )


def _explain_owner(name: str, *owners: str) -> str:
    return (
        f"this environment also holds {' and '.join(owners)}, with a package '{name}' of its own; the two cannot share "
        f"an environment. Give {DISTRIBUTION} its own (python -m venv, pipx, uv tool install), or uninstall the other "
        f"and install {DISTRIBUTION} again: pip uninstall {' '.join(owners)}"
    )
