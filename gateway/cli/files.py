"""Files that commands are given: read and written with errors that name the file and what helps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gateway.cli.console import ExitCode, fail

_MOST_BYTES = 4 * 1024**2


def read_text(path: Path) -> str:
    """The text of a configuration or request; ends the command when it cannot be had."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            fail(f"{path} is larger than 4 MiB, too large for what it should be.", ExitCode.CONFIG)
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        fail(f"{path} cannot be read: {error.strerror or error}. Check the path.", ExitCode.USAGE)
    except UnicodeDecodeError:
        fail(f"{path} is no UTF-8 text.", ExitCode.CONFIG)


def read_yaml(path: Path) -> Any:
    """The value in a YAML file; ends the command with line and column when it is none."""
    from adapters import located_yaml

    try:
        return located_yaml.parse(read_text(path), str(path)).value
    except located_yaml.YamlError as error:
        fail(str(error), ExitCode.CONFIG)


def write_new(path: Path, text: str, *, force: bool) -> None:
    """Write *text*; a file that is there already is kept unless *force* says otherwise, and ends the command."""
    if path.is_dir():
        fail(f"{path} is a folder; name a file in it.", ExitCode.USAGE)
    try:
        with path.open("w" if force else "x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        fail(f"{path} exists; --force overwrites it.")
    except OSError as error:
        help_ = " Make its folder first, or name another." if not path.parent.is_dir() else " Name another place."
        fail(f"{path} cannot be written: {error.strerror or error}.{help_}")
