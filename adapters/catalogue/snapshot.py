"""The dated snapshot of other people's price lists, for models of which our own files give no price."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import cache
from pathlib import Path
from typing import Final, Literal

import msgspec

from adapters.catalogue.record import ModelRecord

SNAPSHOT: Final = Path(__file__).parent / "snapshot.json"
"""Written by `gateway catalog sync`, and by nothing else."""


class Source(msgspec.Struct, frozen=True):
    """A file that a snapshot was made from."""

    name: str
    version: str
    file: str
    sha256: str


class Snapshot(msgspec.Struct, frozen=True):
    """Models by provider type and id, as their sources had them on one day."""

    schema: Literal[1]
    as_of: date
    sources: tuple[Source, ...]
    models: Mapping[str, Mapping[str, ModelRecord]]

    def find(self, provider_type: str, model: str) -> ModelRecord | None:
        """The record of what a provider of that type calls *model*."""
        return self.models.get(provider_type, {}).get(model)


def read_snapshot(data: bytes) -> Snapshot:
    """A snapshot from its file's bytes; raises `msgspec.DecodeError` when they are none."""
    return msgspec.json.decode(data, type=Snapshot)


def write_snapshot(snapshot: Snapshot) -> bytes:
    """The file of *snapshot*: the same bytes for the same snapshot, one line a model, so that changes can be read."""
    lines = ["{", f'"schema":{snapshot.schema},', f'"as_of":"{snapshot.as_of}",']
    lines.append(f'"sources":{msgspec.json.encode(snapshot.sources).decode()},')
    providers = []
    for name, models in sorted(snapshot.models.items()):
        entries = [
            f"{msgspec.json.encode(key).decode()}:{msgspec.json.encode(record).decode()}"
            for key, record in sorted(models.items())
        ]
        providers.append(f"{msgspec.json.encode(name).decode()}:{{\n" + ",\n".join(entries) + "\n}")
    lines.append('"models":{' + ",\n".join(providers) + "}")
    return ("\n".join(lines) + "\n}\n").encode()


@cache
def shipped_snapshot() -> Snapshot:
    """The snapshot that came with this installation; read when first asked for."""
    return read_snapshot(SNAPSHOT.read_bytes())
