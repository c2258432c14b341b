"""Keys as administration sees them: made, shown, listed and revoked, in statements of SQLAlchemy."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Sequence
from typing import Any, Final

from sqlalchemy import Select, insert, or_, select, tuple_, update
from sqlalchemy.exc import IntegrityError

from gateway.storage.database import Database
from gateway.storage.digest import KeyDigest
from gateway.storage.errors import InvalidKeyError, KeyExistsError, KeyNotFoundError
from gateway.storage.key_record import COLUMNS, KeyRecord, record_of
from gateway.storage.session import Session
from gateway.storage.tables import api_keys, counters
from gateway.storage.virtual_key import VirtualKey, check_secret, make_secret, shown_prefix

_MAX_NAME: Final = 200
_MAX_PATTERNS: Final = 100
_MAX_PATTERN: Final = 200


class KeyAdministration:
    """The part of `KeyStore` that is loaded at its first use; there it stands what each does."""

    def __init__(self, database: Database, digest: KeyDigest, clock: Callable[[], float]) -> None:
        self._database = database
        self._digest = digest
        self._clock = clock

    async def create(
        self, name: str, models: Sequence[str] | None, expires_in: float | None, secret: str | None
    ) -> tuple[VirtualKey, str]:
        _check(name, models, expires_in)
        if secret is None:
            secret = make_secret()
        check_secret(secret)
        now = self._clock()
        row: dict[str, Any] = {
            "id": "key_" + secrets.token_hex(8),
            "name": name,
            "prefix": shown_prefix(secret),
            "digest": self._digest(secret.encode()).hex(),
            "models": None if models is None else list(models),
            "created_at_ms": int(now * 1000),
            "expires_at_ms": None if expires_in is None else int((now + expires_in) * 1000),
        }
        try:
            async with self._database.begin() as connection:
                row["changed_seq"] = await _next_change(connection)
                await connection.execute(insert(api_keys).values(row))
        except IntegrityError:
            # The secret stays out of the error and of what it chains to.
            raise KeyExistsError("A key with this secret exists already, live or revoked.") from None
        return (await self.get(row["id"])).key, secret

    async def get(self, id_or_prefix: str) -> KeyRecord:
        async with self._database.read() as connection:
            exact = await _records(connection, _keys().where(api_keys.c.id == id_or_prefix))
            if exact:
                return exact[0]
            columns = (api_keys.c.id, api_keys.c.prefix)
            matches = [column.startswith(id_or_prefix, autoescape=True) for column in columns]
            found = await _records(connection, _keys().where(or_(*matches)).limit(5)) if id_or_prefix else []
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(record.key.id for record in found)
            raise KeyNotFoundError(f"{id_or_prefix!r} fits several keys ({names}, …). Give the whole id.")
        raise KeyNotFoundError(f"There is no key {id_or_prefix!r}. `gateway keys list` shows all.")

    async def page(self, *, limit: int = 100, after: str | None = None) -> list[KeyRecord]:
        query = _keys().order_by(api_keys.c.created_at_ms.desc(), api_keys.c.id.desc()).limit(limit)
        async with self._database.read() as connection:
            if after is not None:
                places = select(api_keys.c.created_at_ms, api_keys.c.id).where(api_keys.c.id == after)
                place = (await connection.execute(places)).one_or_none()
                if place is None:
                    raise KeyNotFoundError(f"There is no key {after!r} to continue after.")
                query = query.where(tuple_(api_keys.c.created_at_ms, api_keys.c.id) < tuple_(*place))
            return await _records(connection, query)

    async def revoke(self, key_id: str) -> KeyRecord:
        async with self._database.begin() as connection:
            sequence = await _next_change(connection)
            await connection.execute(
                update(api_keys)
                .where(api_keys.c.id == key_id, api_keys.c.revoked_at_ms.is_(None))
                .values(revoked_at_ms=int(self._clock() * 1000), changed_seq=sequence)
            )
            found = await _records(connection, _keys().where(api_keys.c.id == key_id))
        if not found:
            raise KeyNotFoundError(f"There is no key {key_id!r}.")
        return found[0]


def _check(name: str, models: Sequence[str] | None, expires_in: float | None) -> None:
    if not 1 <= len(name) <= _MAX_NAME or not name.isprintable():
        raise InvalidKeyError(f"A key's name must be 1 to {_MAX_NAME} printable characters.")
    if models is not None:
        if len(models) > _MAX_PATTERNS:
            raise InvalidKeyError(f"A key can have at most {_MAX_PATTERNS} model patterns.")
        for pattern in models:
            if not 1 <= len(pattern) <= _MAX_PATTERN or not pattern.isprintable():
                raise InvalidKeyError(f"A model pattern must be 1 to {_MAX_PATTERN} printable characters.")
    # A hundred years: beyond it the sum leaves what dates can show.
    if expires_in is not None and not (math.isfinite(expires_in) and 0 < expires_in <= 100 * 365 * 86_400):
        raise InvalidKeyError("A key must expire in the future, and within a hundred years.")


def _keys() -> Select[Any]:
    return select(*(api_keys.c[name] for name in COLUMNS))


async def _next_change(connection: Session) -> int:
    row = update(counters).where(counters.c.name == "api_keys").values(value=counters.c.value + 1)
    return int((await connection.execute(row.returning(counters.c.value))).scalar_one())


async def _records(connection: Session, query: Select[Any]) -> list[KeyRecord]:
    return [record_of(row) for row in (await connection.execute(query)).all()]
