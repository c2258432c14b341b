"""Database addresses: which are accepted, what they mean, and how they are shown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gateway.storage.errors import StorageError

DEFAULT_URL: Final = "sqlite+aiosqlite:///./gateway.db"

_SCHEME = re.compile(r"^(?P<scheme>[a-z][a-z0-9+]*)://(?P<rest>.*)$", re.IGNORECASE | re.DOTALL)
_PASSWORD = re.compile(r"(?<=:)[^:@/]+(?=@)|(?<=password=)[^&]+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class DatabaseUrl:
    """An address that was understood: a SQLite file or a PostgreSQL server, never both."""

    sqlite_path: Path | None
    postgres_dsn: str | None
    """As libpq writes it (``postgresql://…``), so that ``sslmode`` and ``host=/socket/dir`` work as everywhere."""

    @property
    def is_sqlite(self) -> bool:
        return self.sqlite_path is not None

    @property
    def state_dir(self) -> Path:
        """Where files that belong to the database live: beside a SQLite file, else the working directory."""
        return self.sqlite_path.parent if self.sqlite_path is not None else Path.cwd()

    def beside(self, suffix: str) -> Path:
        """The path of a companion file, ``gateway.db`` having ``gateway.pepper`` and so on."""
        stem = self.sqlite_path.stem if self.sqlite_path is not None else "gateway"
        return self.state_dir / f"{stem}{suffix}"

    def __str__(self) -> str:
        """For people: without the password."""
        if self.sqlite_path is not None:
            return f"SQLite file {self.sqlite_path}"
        return "PostgreSQL at " + _PASSWORD.sub("***", self.postgres_dsn or "")

    # The generated repr would print the password.
    __repr__ = __str__


def parse_database_url(url: str) -> DatabaseUrl:
    """Understand *url*; `StorageError` says which forms there are.

    ``postgres://``, ``postgresql://`` and ``postgresql+asyncpg://`` mean the same, as do ``sqlite://`` and
    ``sqlite+aiosqlite://``.
    """
    match = _SCHEME.match(url.strip())
    scheme, rest = (match["scheme"].lower(), match["rest"]) if match else ("", "")
    if scheme in ("postgresql+asyncpg", "postgresql", "postgres"):
        return DatabaseUrl(sqlite_path=None, postgres_dsn=f"postgresql://{rest}")
    if scheme in ("sqlite+aiosqlite", "sqlite"):
        # Three slashes and a relative path, or four and an absolute one; SQLite's own query options are not offered.
        path = rest.removeprefix("/").partition("?")[0]
        if path in ("", ":memory:"):
            raise StorageError(
                "An in-memory SQLite database cannot be shared by workers or outlive a restart. "
                f"Give storage.database_url a file, such as {DEFAULT_URL}."
            )
        return DatabaseUrl(sqlite_path=Path(path).absolute(), postgres_dsn=None)
    raise StorageError(
        f"storage.database_url {f'begins with {scheme!r}' if scheme else 'is no address'}; it must be "
        "sqlite+aiosqlite:///./FILE or postgresql+asyncpg://USER:PASSWORD@HOST/DATABASE."
    )
