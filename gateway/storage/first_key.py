"""A key that is there from the first start on, so that the first request needs no set-up."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gateway.__about__ import KEY_PREFIX
from gateway.storage.errors import InvalidKeyError, KeyExistsError, StorageError
from gateway.storage.keys import KeyStore
from gateway.storage.private_file import create_private, read_private, replace_private
from gateway.storage.virtual_key import check_secret, make_secret

_NAME: Final = "first key"
_ROUNDS: Final = 20


@dataclass(frozen=True, slots=True)
class FirstKey:
    """A key that works, the file it lies in, and whether this start has made it, so that nobody has seen it yet."""

    secret: str = field(repr=False)
    path: Path
    is_new: bool = False


async def ensure_first_key(store: KeyStore, path: Path) -> FirstKey:
    """The key whose secret is in the file *path*; file and key are made where there is none.

    A key that was revoked or has expired is replaced. Safe to call from several processes at once: all return the
    same secret, for a key is stored only after its secret was read back from the file; it is new to one of them.
    """
    for _ in range(_ROUNDS):
        secret = read_private(path)
        if secret is None:
            create_private(path, make_secret())
            continue
        _check_ours(secret, path)
        digest = store.digest(secret.encode())
        record = (await store.find([digest])).get(digest)
        if record is None:
            try:
                await store.create(_NAME, secret=secret)
            except KeyExistsError:
                continue
            return FirstKey(secret, path, is_new=True)
        if record.is_live(time.time()):
            return FirstKey(secret, path)
        replace_private(path, make_secret())
    raise StorageError(f"{path} keeps changing: something else writes to it.")


async def find_first_key(store: KeyStore, path: Path) -> FirstKey | None:
    """The key whose secret is in the file *path*, if it works. Makes and changes nothing."""
    secret = read_private(path)
    if secret is None:
        return None
    _check_ours(secret, path)
    digest = store.digest(secret.encode())
    record = (await store.find([digest])).get(digest)
    return FirstKey(secret, path) if record is not None and record.is_live(time.time()) else None


def _check_ours(secret: str, path: Path) -> None:
    """Never overwrite or adopt a file of somebody else: ``gateway.key`` is what many call a TLS key."""
    try:
        check_secret(secret)
    except InvalidKeyError:
        secret = ""
    if not secret.startswith(KEY_PREFIX):
        raise StorageError(f"{path} is there but holds no key of this program. Move it away.")
