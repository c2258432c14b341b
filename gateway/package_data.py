"""Where the files that are not code lie, in a checkout and in an installed wheel."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def data_path(name: str) -> Path:
    """The path of ``migrations`` or ``config.example.yaml``; `FileNotFoundError` when the installation lacks it.

    The wheel packs these as data of `gateway`, so that no top-level name is taken from other distributions; a
    checkout has them beside the packages.
    """
    packed = _PACKAGE / "_data"
    path = packed / name if packed.is_dir() else _PACKAGE.parent / name
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: the installation is incomplete, install it again")
    return path
