"""The one place where failures of the drivers become `StorageError`s with a message a person can act on."""

from __future__ import annotations

import sqlite3
from typing import Final

from gateway.storage.errors import RejectedError, SchemaError, StorageError, StorageUnavailableError
from gateway.storage.urls import DatabaseUrl

_Row = tuple[tuple[str, ...], type[StorageError], str]

_BEHIND: Final = "lacks something this version needs: {said}. Run `gateway db upgrade`."
_FOREIGN: Final = "holds tables that are not ours: {said}. Give the gateway a database of its own."

# Names of asyncpg's exceptions, their base classes included; the first row that fits counts.
_POSTGRES: Final[tuple[_Row, ...]] = (
    (
        ("InvalidPasswordError", "InvalidAuthorizationSpecificationError"),
        StorageError,
        "refused the user name or password: {said}. Correct storage.database_url.",
    ),
    (
        ("InvalidCatalogNameError",),
        StorageError,
        "has no such database: {said}. Create it, or correct storage.database_url.",
    ),
    (("ClientConfigurationError",), StorageError, "is no usable address: {said}. Correct storage.database_url."),
    (("InsufficientPrivilegeError",), StorageError, "does not permit this: {said}. Grant the right to the user."),
    (("UndefinedTableError", "UndefinedColumnError"), SchemaError, _BEHIND),
    (("DuplicateTableError",), SchemaError, _FOREIGN),
    (("DataError", "IntegrityConstraintViolationError"), RejectedError, "does not take a value: {said}."),
    (("SyntaxOrAccessError",), StorageError, "refused a statement: {said}."),
)

# Parts of SQLite's messages; its result codes do not tell these apart.
_SQLITE: Final[tuple[_Row, ...]] = (
    (
        ("not a database", "malformed"),
        StorageError,
        "is damaged or no SQLite database ({said}). Move it away or restore it from a backup.",
    ),
    (("readonly",), StorageError, "is not writable ({said}). Correct the owner or mode of the file and its directory."),
    (("unable to open",), StorageError, "cannot be opened ({said}). Correct storage.database_url or the file's mode."),
    (("no such table", "no such column"), SchemaError, _BEHIND),
    (("already exists",), SchemaError, _FOREIGN),
)
_SQLITE_VALUES: Final = (
    sqlite3.ProgrammingError,
    sqlite3.InterfaceError,
    sqlite3.DataError,
    sqlite3.IntegrityError,
)


def failures(url: DatabaseUrl) -> tuple[type[Exception], ...]:
    """What a statement can end with."""
    if url.is_sqlite:
        return (sqlite3.Error, OSError)
    import asyncpg

    return (asyncpg.PostgresError, asyncpg.InterfaceError, OSError)


def in_words(error: BaseException, url: DatabaseUrl) -> StorageError:
    """The error to raise in place of *error*, one of `failures`."""
    said = str(error).strip() or type(error).__name__
    return _of_sqlite(error, said, url) if url.is_sqlite else _of_postgres(error, said, url)


def _of_sqlite(error: BaseException, said: str, url: DatabaseUrl) -> StorageError:
    if isinstance(error, _SQLITE_VALUES):
        return RejectedError(f"{url} does not take a value: {said}.")
    for parts, kind, message in _SQLITE:
        if any(part in said for part in parts):
            return kind(f"{url} " + message.format(said=said))
    return StorageUnavailableError(f"{url} cannot be used right now: {said}.")


def _of_postgres(error: BaseException, said: str, url: DatabaseUrl) -> StorageError:
    # SQLAlchemy wraps asyncpg's own exception, whose class tells most, in one that tells less.
    names = {kind.__name__ for link in (error, error.__cause__) for kind in type(link).__mro__}
    for wanted, kind, message in _POSTGRES:
        if names.intersection(wanted):
            return kind(f"{url} " + message.format(said=said))
    if isinstance(error, TimeoutError):
        said = "no answer in time"
    return StorageUnavailableError(f"{url} cannot be reached: {said}. Check that the server runs and the address.")
