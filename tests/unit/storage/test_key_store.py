"""Making, finding, listing and revoking keys, on both databases."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import text

from gateway.storage.database import Database
from gateway.storage.errors import InvalidKeyError, KeyExistsError, KeyNotFoundError
from gateway.storage.keys import KeyStore


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


async def test_a_new_key_is_found_by_its_digest_and_its_secret_is_nowhere_in_the_database(
    store: KeyStore, database: Database
) -> None:
    key, secret = await store.create("laptop", models=["gpt-*", "llama"], expires_in=60)

    digest = store.digest(secret.encode())
    record = (await store.find([digest]))[digest]
    async with database.read() as connection:
        stored = str((await connection.execute(text("SELECT * FROM api_keys"))).all())

    assert record.key == key
    assert (key.name, key.models, key.prefix) == ("laptop", ("gpt-*", "llama"), secret[:8])
    assert key.expires_at == pytest.approx(record.created_at + 60, abs=0.002)
    assert secret not in stored
    assert secret[8:] not in stored


async def test_no_list_of_models_is_not_an_empty_one(store: KeyStore) -> None:
    everything, _ = await store.create("everything")
    nothing, _ = await store.create("nothing", models=[])

    assert (await store.get(everything.id)).key.models is None
    assert (await store.get(nothing.id)).key.models == ()


async def test_an_imported_secret_stays_as_it_is(store: KeyStore) -> None:
    _, secret = await store.create("moved", secret="sk-from-the-old-gateway-1234")

    assert secret == "sk-from-the-old-gateway-1234"
    assert await store.find([store.digest(b"sk-from-the-old-gateway-1234")])


async def test_a_secret_can_be_stored_once_even_after_it_was_revoked(store: KeyStore) -> None:
    key, secret = await store.create("one")
    await store.revoke(key.id)

    with pytest.raises(KeyExistsError) as caught:
        await store.create("two", secret=secret)

    assert secret not in repr(caught.value)
    assert caught.value.__cause__ is None
    assert [record.key.name for record in await store.page()] == ["one"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": "n" * 201},
        {"name": "bell\a"},
        {"models": [""]},
        {"models": ["m"] * 101},
        {"models": ["m" * 201]},
        {"expires_in": 0},
        {"expires_in": -5},
        {"expires_in": float("nan")},
        {"expires_in": 1e12},
        {"secret": "short"},
    ],
)
async def test_what_a_key_cannot_have_is_refused_before_anything_is_stored(
    store: KeyStore, wrong: dict[str, object]
) -> None:
    with pytest.raises(InvalidKeyError):
        await store.create(**{"name": "fine", **wrong})  # type: ignore[arg-type]

    assert await store.page() == []


async def test_a_key_is_found_by_id_by_the_start_of_it_and_by_the_start_of_its_secret(store: KeyStore) -> None:
    key, _ = await store.create("mine", secret="zz-0123456789abcdef0123456789abcdef")
    await store.create("other")

    for asked in (key.id, key.id[:12], "zz-01234", "zz-"):
        assert (await store.get(asked)).key == key


@pytest.mark.parametrize("asked", ["key_", "nothing", "", "%", "_ey", "key\\_"])
async def test_what_fits_no_key_or_several_is_not_found(store: KeyStore, asked: str) -> None:
    await store.create("one")
    await store.create("two")

    with pytest.raises(KeyNotFoundError):
        await store.get(asked)


async def test_pages_cover_all_keys_once_newest_first(store: KeyStore) -> None:
    store._clock = clock = Clock()
    names = [f"key {number}" for number in range(7)]
    for number, name in enumerate(names):
        clock.now += number % 2  # some were made within the same millisecond
        await store.create(name)

    seen: list[str] = []
    after = None
    while page := await store.page(limit=3, after=after):
        seen += [record.key.name for record in page]
        created = [record.created_at for record in page]
        assert created == sorted(created, reverse=True)
        after = page[-1].key.id

    assert sorted(seen) == names
    with pytest.raises(KeyNotFoundError):
        await store.page(after="key_unknown")


async def test_revoking_twice_keeps_the_first_time(store: KeyStore) -> None:
    store._clock = clock = Clock()
    key, _ = await store.create("lost")
    first = await store.revoke(key.id)
    clock.now += 100
    second = await store.revoke(key.id)

    assert first.revoked_at == second.revoked_at == 1_000_000.0
    assert not second.is_live(clock.now)
    with pytest.raises(KeyNotFoundError):
        await store.revoke("key_unknown")


async def test_changes_are_numbered_in_the_order_in_which_they_become_visible(store: KeyStore) -> None:
    start = await store.last_change()
    keys = await asyncio.gather(*(store.create(f"key {number}") for number in range(8)))
    middle = await store.last_change()
    await store.revoke(keys[3][0].id)

    assert middle == start + 8
    assert {record.key.id for record in await store.changes_since(start)} == {key.id for key, _ in keys}
    assert [record.key.id for record in await store.changes_since(middle)] == [keys[3][0].id]
    assert await store.changes_since(await store.last_change()) == []
