"""The pepper: a secret beside the database without which stolen digests cannot be tried out."""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Mapping
from typing import Final

from gateway.storage.database import Database
from gateway.storage.digest import KeyDigest
from gateway.storage.errors import PepperError
from gateway.storage.private_file import create_private, read_private

VARIABLE: Final = "GATEWAY_KEY_PEPPER"
_MIN_CHARACTERS: Final = 16
_SETTING: Final = "key_pepper_check"


async def load_digest(database: Database, environ: Mapping[str, str] = os.environ) -> KeyDigest:
    """The digest under this database's pepper, which is made at the first call.

    It comes from GATEWAY_KEY_PEPPER, else from the file ``gateway.pepper`` beside the SQLite file (named after it)
    or, for PostgreSQL, in the working directory. The database remembers which pepper it was begun with, and any
    other is a `PepperError`: all keys would silently stop working. Safe to call from several processes at once.
    """
    remembered = await remembered_check(database)
    pepper, source = _find(database, environ, may_create=remembered is None)
    digest = KeyDigest(pepper.encode())
    if remembered is None:
        remembered = await _remember_check(database, digest.check_value)
    if not hmac.compare_digest(remembered, digest.check_value):
        raise PepperError(
            f"The pepper in {source} is not the one the keys in {database.url} were made with, so none of them would "
            f"work. Give the old one back in {VARIABLE}; every machine on one database needs the same."
        )
    return digest


def _find(database: Database, environ: Mapping[str, str], *, may_create: bool) -> tuple[str, str]:
    given = environ.get(VARIABLE, "")
    if given:
        if len(given) < _MIN_CHARACTERS:
            raise PepperError(f"{VARIABLE} is too short: at least {_MIN_CHARACTERS} random characters, please.")
        return given, VARIABLE
    path = database.url.beside(".pepper")
    pepper = read_private(path)
    if pepper is None and may_create:
        create_private(path, secrets.token_urlsafe(32))
        pepper = read_private(path)
    if pepper is None:
        raise PepperError(
            f"{path} is missing, and without it no key in {database.url} can be checked. "
            f"Put the file back, or set {VARIABLE}."
        )
    if len(pepper) < _MIN_CHARACTERS:
        raise PepperError(f"{path} does not hold a pepper. Put the right file back, or set {VARIABLE}.")
    return pepper, str(path)


async def remembered_check(database: Database) -> str | None:
    """What tells the pepper this database was begun with from others, or None where there was none yet."""
    rows = await database.fetch("SELECT value FROM settings WHERE name = $1", _SETTING)
    return rows[0][0] if rows else None


async def _remember_check(database: Database, check: str) -> str:
    """Store *check* unless another process was first; returns what is stored."""
    await database.fetch(
        "INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING", _SETTING, check
    )
    stored = await remembered_check(database)
    assert stored is not None
    return stored
