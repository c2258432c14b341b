"""Whether a model's file is what it should be: damaged weights load without complaint, and talk nonsense."""

from __future__ import annotations

import contextlib
import hashlib
import json
import struct
from pathlib import Path

from local_engine.errors import ModelDamagedError, ModelMissingError
from local_engine.registry import KnownModel

_CHUNK_BYTES = 1 << 20
_GGUF_MAGIC = b"GGUF"
_GGUF_VERSIONS = (2, 3)
_SMALLEST_GGUF_BYTES = 1024


def check_weights(path: Path, known: KnownModel | None) -> None:
    """Raise `ModelDamagedError` when the file cannot be right.

    The digest of a known model is computed once for each state of its file, and remembered beside it.
    """
    try:
        _check_header(path)
        if known is not None:
            _check_digest(path, known)
    except FileNotFoundError as error:
        raise ModelMissingError(f"there is no model file {path}") from error
    except OSError as error:
        raise ModelDamagedError(f"the model file {path} cannot be read: {error.strerror}") from error


def sha256_of(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def record_path(path: Path) -> Path:
    """Where the result of the last digest is kept."""
    return path.with_name(path.name + ".checked")


def _check_header(path: Path) -> None:
    with path.open("rb") as file:
        header = file.read(8)
    if header[:4] != _GGUF_MAGIC:
        raise ModelDamagedError(f"{path} is not a GGUF file")
    version = int(struct.unpack("<I", header[4:8])[0]) if len(header) == 8 else 0
    if version not in _GGUF_VERSIONS:
        raise ModelDamagedError(f"{path} is GGUF version {version}, which the engine does not read")
    if path.stat().st_size < _SMALLEST_GGUF_BYTES:
        raise ModelDamagedError(f"{path} ends after {path.stat().st_size} bytes: it is incomplete")


def _check_digest(path: Path, known: KnownModel) -> None:
    stat = path.stat()
    remedy = f"remove it with `gateway local rm {known.name}` and fetch it again with `gateway local pull`"
    if stat.st_size != known.size_bytes:
        raise ModelDamagedError(f"{path} has {stat.st_size} bytes instead of {known.size_bytes}: {remedy}")
    state = {"size": stat.st_size, "mtime_ns": stat.st_mtime_ns, "inode": stat.st_ino}
    if _recorded(path) == state | {"sha256": known.sha256}:
        return
    digest = sha256_of(path)
    if digest != known.sha256:
        raise ModelDamagedError(f"{path} is damaged, its sha256 is not the recorded one: {remedy}")
    remember(path, digest)


def remember(path: Path, digest: str) -> None:
    """Note that the file as it is now has *digest*; a store that cannot be written only costs time."""
    stat = path.stat()
    state = {"size": stat.st_size, "mtime_ns": stat.st_mtime_ns, "inode": stat.st_ino, "sha256": digest}
    with contextlib.suppress(OSError):
        record_path(path).write_text(json.dumps(state))


def _recorded(path: Path) -> dict[str, object] | None:
    try:
        decoded = json.loads(record_path(path).read_text())
    except (OSError, ValueError):
        return None
    return decoded if isinstance(decoded, dict) else None
