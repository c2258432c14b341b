"""Small secret files: mode 0600, there whole or not at all, and safe when several processes make them at once."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from gateway.storage.errors import StorageError


def read_private(path: Path) -> str | None:
    """The file's text without surrounding white space, or None where there is no file."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise StorageError(f"Cannot read {path}: {_reason(error)}.") from error


def create_private(path: Path, text: str) -> bool:
    """Write a new file; False when another process was first, whose file then stays as it is."""
    temporary = _write_beside(path, text)
    try:
        # A hard link appears with its content and fails when the name is taken; a rename would replace.
        os.link(temporary, path)
    except FileExistsError:
        return False
    except OSError as error:
        raise StorageError(f"Cannot create {path}: {_reason(error)}.") from error
    finally:
        temporary.unlink()
    return True


def replace_private(path: Path, text: str) -> None:
    """Put a new file in the place of an old one; readers see either."""
    temporary = _write_beside(path, text)
    try:
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise StorageError(f"Cannot replace {path}: {_reason(error)}.") from error


def _write_beside(path: Path, text: str) -> Path:
    try:
        # mkstemp opens with mode 0600, whatever the umask.
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise StorageError(f"Cannot write to the directory {path.parent}: {_reason(error)}.") from error
    return Path(name)


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
