"""A stored key with its history, and how a row of the table becomes one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from gateway.storage.virtual_key import VirtualKey

COLUMNS: Final = (
    "id",
    "name",
    "prefix",
    "models",
    "organisation_id",
    "team_id",
    "user_id",
    "expires_at_ms",
    "digest",
    "created_at_ms",
    "revoked_at_ms",
)
"""Of ``api_keys``, in the order in which `record_of` takes their values."""


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """A stored key with its history."""

    key: VirtualKey
    digest: bytes = field(repr=False)
    created_at: float
    """Seconds since 1970, as all times here."""
    revoked_at: float | None

    def is_live(self, now: float) -> bool:
        """Neither revoked nor expired."""
        return self.revoked_at is None and (self.key.expires_at is None or now < self.key.expires_at)


def public_fields(record: KeyRecord) -> dict[str, Any]:
    """What may be shown of a key, by the names it has everywhere; times are `datetime` in UTC, or None."""
    key = record.key
    return {
        "id": key.id,
        "name": key.name,
        "prefix": key.prefix,
        "models": None if key.models is None else list(key.models),
        "created_at": _time(record.created_at),
        "expires_at": _time(key.expires_at),
        "revoked_at": _time(record.revoked_at),
    }


def record_of(values: Sequence[Any]) -> KeyRecord:
    """The record of a row: the values of `COLUMNS`, the models as a list or as JSON."""
    id_, name, prefix, models, organisation_id, team_id, user_id, expires_at_ms, digest, *times = values
    if isinstance(models, str):  # drivers hand JSON on as it is; SQLAlchemy reads it
        models = json.loads(models)
    key = VirtualKey(
        id=id_,
        name=name,
        prefix=prefix,
        models=None if models is None else tuple(models),
        organisation_id=organisation_id,
        team_id=team_id,
        user_id=user_id,
        expires_at=_seconds(expires_at_ms),
    )
    created_at_ms, revoked_at_ms = times
    return KeyRecord(
        key=key, digest=bytes.fromhex(digest), created_at=created_at_ms / 1000, revoked_at=_seconds(revoked_at_ms)
    )


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
