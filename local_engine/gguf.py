"""Reads what a GGUF file says of itself: its metadata, and the lengths of its lists. Tensors are not read.

The layout is that of versions 2 and 3 (ggml-org/ggml, docs/gguf.md, read 2026-11-30), little-endian.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias

Value: TypeAlias = "bool | int | float | str | tuple[bool | int | float, ...]"

MAGIC: Final = b"GGUF"
VERSIONS: Final = (2, 3)
_BOOL, _STRING, _ARRAY = 7, 8, 9
_SCALARS: Final = {
    kind: struct.Struct(f"<{code}") for kind, code in {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f"}.items()
} | {_BOOL: struct.Struct("<?"), 10: struct.Struct("<Q"), 11: struct.Struct("<q"), 12: struct.Struct("<d")}
_LONGEST_STRING: Final = 64 << 20
_MOST_ENTRIES: Final = 65536
_MOST_ITEMS: Final = 16 << 20
# Lists that say something of each layer are short; those of the vocabulary are only counted.
_KEPT_ITEMS: Final = 1024
_PART: Final = re.compile(r"-(\d{5})-of-(\d{5})\.gguf\Z")


class UnreadableGgufError(ValueError):
    """The file is no GGUF file, or breaks off within its metadata."""


@dataclass(frozen=True, slots=True)
class Header:
    """The metadata of a file. Lists of text, and long lists, are in *lengths* alone."""

    values: Mapping[str, Value]
    lengths: Mapping[str, int]

    @property
    def architecture(self) -> str:
        """What llama.cpp calls the kind of model: llama, qwen3, bert, …; empty when the file does not say."""
        return self.text("general.architecture")

    def text(self, key: str) -> str:
        value = self.values.get(key)
        return value if isinstance(value, str) else ""

    def number(self, key: str) -> int | None:
        value = self.values.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def own(self, key: str) -> Value | None:
        """The value of *key* among those of the architecture."""
        return self.values.get(f"{self.architecture}.{key}")

    def own_number(self, key: str) -> int | None:
        return self.number(f"{self.architecture}.{key}")

    def for_each(self, key: str, blocks: int) -> list[int]:
        """A number of the architecture for each of *blocks* layers, whether the file has one for all or a list."""
        value = self.own(key)
        if isinstance(value, tuple):
            return [int(item) for item in value[:blocks]]
        return [value if isinstance(value, int) else 0] * blocks


def read_header(path: Path) -> Header:
    """What *path* says of itself; `UnreadableGgufError` or `OSError`. Remembered for as long as the file is the same.

    The vocabulary of a large model is walked through in some 50 ms.
    """
    state = path.stat()
    return _read(str(path), state.st_mtime_ns, state.st_size)


def parts(path: Path) -> list[Path]:
    """All files of a model that was split in several, of which *path* is the first; else *path* alone."""
    found = _PART.search(path.name)
    if found is None:
        return [path]
    stem = path.name[: found.start()]
    names = (f"{stem}-{number:05d}-of-{found[2]}.gguf" for number in range(1, int(found[2]) + 1))
    return [path.with_name(name) for name in names]


@lru_cache(maxsize=64)
def _read(path: str, mtime_ns: int, size: int) -> Header:
    with Path(path).open("rb") as file:
        try:
            return _Reader(file, size).header()
        except (struct.error, UnicodeDecodeError) as error:
            raise UnreadableGgufError(f"{path} breaks off within its metadata") from error
        except _FormatError as error:
            raise UnreadableGgufError(f"{path} {error}") from error


class _FormatError(Exception):
    """What is wrong, to be said after the file's name."""


class _Reader:
    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._size = size
        self._lengths: dict[str, int] = {}

    def header(self) -> Header:
        if self._file.read(4) != MAGIC:
            raise _FormatError("is not a GGUF file")
        version = self._number(4)
        if version not in VERSIONS:
            raise _FormatError(f"is GGUF version {version}, which the engine does not read")
        self._number(10)  # how many tensors there are
        entries = self._number(10)
        if entries > _MOST_ENTRIES:
            raise _FormatError(f"claims to have {entries} metadata entries")
        values: dict[str, Value] = {}
        for _ in range(entries):
            key = self._text()
            value = self._value(key, self._number(4))
            if value is not None:
                values[key] = value
        return Header(values, self._lengths)

    def _value(self, key: str, kind: int) -> Value | None:
        if kind == _STRING:
            return self._text()
        if kind == _ARRAY:
            return self._list(key)
        return self._scalar(kind)

    def _list(self, key: str) -> tuple[bool | int | float, ...] | None:
        kind, count = self._number(4), self._number(10)
        if count > _MOST_ITEMS:
            raise _FormatError(f"claims to have {count} items in {key}")
        self._lengths[key] = count
        if kind == _STRING:
            for _ in range(count):
                self._skip(self._number(10))
        elif kind == _ARRAY:
            raise _FormatError(f"has lists within the list {key}")
        elif count > _KEPT_ITEMS:
            self._skip(count * self._struct(kind).size)
        else:
            return tuple(self._scalar(kind) for _ in range(count))
        return None

    def _text(self) -> str:
        length = self._number(10)
        if length > _LONGEST_STRING:
            raise _FormatError(f"claims to have a text of {length} bytes")
        data = self._file.read(length)
        if len(data) < length:
            raise _FormatError("breaks off within its metadata")
        return data.decode()

    def _number(self, kind: int) -> int:
        return int(self._scalar(kind))

    def _scalar(self, kind: int) -> bool | int | float:
        form = self._struct(kind)
        value: bool | int | float = form.unpack(self._file.read(form.size))[0]
        return value

    def _struct(self, kind: int) -> struct.Struct:
        form = _SCALARS.get(kind)
        if form is None:
            raise _FormatError(f"has a value of the unknown type {kind}")
        return form

    def _skip(self, count: int) -> None:
        if self._file.seek(count, os.SEEK_CUR) > self._size:
            raise _FormatError("breaks off within its metadata")
