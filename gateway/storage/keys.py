"""The keys that are stored: made, listed, revoked, and followed as they change."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from gateway.late import load
from gateway.storage.database import Database
from gateway.storage.digest import KeyDigest
from gateway.storage.key_record import COLUMNS, KeyRecord, record_of
from gateway.storage.pepper import load_digest
from gateway.storage.virtual_key import VirtualKey

if TYPE_CHECKING:
    from gateway.storage.key_administration import KeyAdministration

__all__ = ["KeyRecord", "KeyStore", "VirtualKey", "open_key_store"]

_SELECT: Final = f"SELECT {', '.join(COLUMNS)} FROM api_keys"  # noqa: S608 - names of columns


async def open_key_store(database: Database, environ: Mapping[str, str] = os.environ) -> KeyStore:
    """The keys of a connected database with a current schema, under its pepper."""
    return KeyStore(database, await load_digest(database, environ))


class KeyStore:
    """Keys in the database. Secrets are never stored, only their digests.

    `find`, `last_change` and `changes_since` are what requests need; the rest is loaded at its first use.
    """

    def __init__(self, database: Database, digest: KeyDigest, *, clock: Callable[[], float] = time.time) -> None:
        self.database = database
        self.digest = digest
        self._clock = clock

    async def create(
        self,
        name: str,
        *,
        models: Sequence[str] | None = None,
        expires_in: float | None = None,
        secret: str | None = None,
    ) -> tuple[VirtualKey, str]:
        """Store a new key and return it with its secret, which cannot be had again.

        *expires_in* is in seconds. A *secret* that is given is kept as it is. `InvalidKeyError` and `KeyExistsError`
        say what is wrong with it.
        """
        return await (await self._administration()).create(name, models, expires_in, secret)

    async def get(self, id_or_prefix: str) -> KeyRecord:
        """The key with that id, or the only one whose id or shown prefix begins so; else `KeyNotFoundError`."""
        return await (await self._administration()).get(id_or_prefix)

    async def page(self, *, limit: int = 100, after: str | None = None) -> list[KeyRecord]:
        """At most *limit* keys, newest first, from behind the key with the id *after*."""
        return await (await self._administration()).page(limit=limit, after=after)

    async def revoke(self, key_id: str) -> KeyRecord:
        """Make a key useless from now on; one that was revoked before keeps its time."""
        return await (await self._administration()).revoke(key_id)

    async def find(self, digests: Iterable[bytes]) -> dict[bytes, KeyRecord]:
        """The stored keys among *digests*, live or not."""
        wanted = [digest.hex() for digest in digests]
        places = ", ".join(f"${place}" for place in range(1, len(wanted) + 1))
        rows = await self.database.fetch(f"{_SELECT} WHERE digest IN ({places})", *wanted)
        return {record.digest: record for record in map(record_of, rows)}

    async def last_change(self) -> int:
        """The number of the newest change; it grows with each and is cheap to ask for."""
        rows = await self.database.fetch("SELECT value FROM counters WHERE name = 'api_keys'")
        return rows[0][0] if rows else 0

    async def changes_since(self, sequence: int) -> list[KeyRecord]:
        """The keys that were made or revoked after the change with that number."""
        return [record_of(row) for row in await self.database.fetch(f"{_SELECT} WHERE changed_seq > $1", sequence)]

    async def _administration(self) -> KeyAdministration:
        module = await load("gateway.storage.key_administration")
        administration: KeyAdministration = module.KeyAdministration(self.database, self.digest, self._clock)
        return administration
