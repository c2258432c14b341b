"""The key of the first start."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from gateway.storage.errors import StorageError
from gateway.storage.first_key import FirstKey, ensure_first_key
from gateway.storage.keys import KeyStore


async def test_the_first_key_works_lies_in_a_private_file_and_stays_the_same(store: KeyStore, tmp_path: Path) -> None:
    path = tmp_path / "gateway.key"

    made = await ensure_first_key(store, path)

    secret = made.secret
    assert secret not in repr(made)
    assert await store.find([store.digest(secret.encode())])
    assert path.read_text() == secret + "\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert (made.path, made.is_new) == (path, True)
    assert await ensure_first_key(store, path) == FirstKey(secret, path, is_new=False)
    assert len(await store.page()) == 1


async def test_a_revoked_first_key_is_replaced(store: KeyStore, tmp_path: Path) -> None:
    path = tmp_path / "gateway.key"
    old = (await ensure_first_key(store, path)).secret
    await store.revoke((await store.page())[0].key.id)

    new = await ensure_first_key(store, path)

    assert new.secret != old
    assert new.is_new
    assert path.read_text().strip() == new.secret
    assert len(await store.find([store.digest(new.secret.encode())])) == 1


async def test_a_file_left_by_a_start_that_was_killed_is_taken_up(store: KeyStore, tmp_path: Path) -> None:
    path = tmp_path / "gateway.key"
    path.write_text("gw-0123456789abcdef0123456789abcdef\n")

    assert (await ensure_first_key(store, path)).secret == "gw-0123456789abcdef0123456789abcdef"
    assert len(await store.page()) == 1


@pytest.mark.parametrize("content", ["-----BEGIN PRIVATE KEY-----\nMIIE\n", "", "sk-somebody-elses-api-key-1234"])
async def test_a_file_of_somebody_else_is_never_touched(store: KeyStore, tmp_path: Path, content: str) -> None:
    path = tmp_path / "gateway.key"
    path.write_text(content)

    with pytest.raises(StorageError, match="Move it away"):
        await ensure_first_key(store, path)

    assert path.read_text() == content
    assert await store.page() == []
