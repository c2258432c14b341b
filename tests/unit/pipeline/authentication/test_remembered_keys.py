"""What is remembered of keys, for how long, and what ends it."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from gateway.errors import AuthenticationError
from gateway.pipeline.authenticate import Authenticator
from gateway.storage.keys import KeyStore
from tests.unit.pipeline.authentication.asking import Clock, bearer, who


async def test_a_refusal_is_remembered_for_two_seconds(
    authenticator: Authenticator, clock: Clock, queries: list[str]
) -> None:
    headers = bearer("gw-nobody-has-this-key")
    with pytest.raises(AuthenticationError):
        await authenticator.look_up(authenticator.credentials(headers))
    queries.clear()

    with pytest.raises(AuthenticationError):
        authenticator.check(authenticator.credentials(headers))
    clock.now += 2.01

    assert authenticator.check(authenticator.credentials(headers)) is None
    assert queries == []


async def test_refusals_are_not_remembered_without_bound(authenticator: Authenticator) -> None:
    for number in range(10_050):
        authenticator._refuse(number.to_bytes(32, "big"))

    assert len(authenticator._refused) == 10_000
    assert (10_049).to_bytes(32, "big") in authenticator._refused
    assert (49).to_bytes(32, "big") not in authenticator._refused


async def test_a_key_made_elsewhere_works_at_once_even_after_it_was_refused(
    authenticator: Authenticator, store: KeyStore
) -> None:
    with pytest.raises(AuthenticationError):
        await who(authenticator, bearer("gw-imported-in-a-moment"))
    key, _ = await store.create("imported", secret="gw-imported-in-a-moment")

    await authenticator.poll()

    assert await who(authenticator, bearer("gw-imported-in-a-moment")) == key


async def test_a_known_key_expires_on_time_without_the_database(
    authenticator: Authenticator, store: KeyStore, clock: Clock
) -> None:
    key, secret = await store.create("short-lived", expires_in=60)
    assert await who(authenticator, bearer(secret)) == key
    clock.now += 59.9
    assert authenticator.check(authenticator.credentials(bearer(secret))) == key
    clock.now += 0.2

    with pytest.raises(AuthenticationError):
        authenticator.check(authenticator.credentials(bearer(secret)))


async def test_a_revocation_is_seen_by_the_next_poll(authenticator: Authenticator, store: KeyStore) -> None:
    key, secret = await store.create("lost")
    other, other_secret = await store.create("kept")
    await who(authenticator, bearer(secret))
    await who(authenticator, bearer(other_secret))
    await store.revoke(key.id)

    await authenticator.poll()

    with pytest.raises(AuthenticationError):
        await who(authenticator, bearer(secret))
    assert authenticator.check(authenticator.credentials(bearer(other_secret))) == other


async def test_a_revocation_that_overtakes_a_look_up_is_not_forgotten(
    store: KeyStore, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    authenticator = Authenticator(store, clock=clock, monotonic=clock)
    await authenticator.poll()
    key, secret = await store.create("lost")
    await authenticator.poll()
    find = store.find

    async def find_while_it_is_revoked(digests: list[bytes]) -> object:
        found = await find(digests)
        await store.revoke(key.id)
        await authenticator.poll()
        return found

    monkeypatch.setattr(store, "find", find_while_it_is_revoked)
    assert await authenticator.look_up(authenticator.credentials(bearer(secret))) == key
    monkeypatch.undo()

    assert authenticator.check(authenticator.credentials(bearer(secret))) is None
    with pytest.raises(AuthenticationError):
        await authenticator.look_up(authenticator.credentials(bearer(secret)))


async def test_an_idle_poll_is_one_small_query(
    authenticator: Authenticator, store: KeyStore, queries: list[str]
) -> None:
    await store.create("one")
    await authenticator.poll()
    queries.clear()

    await authenticator.poll()

    assert len([query for query in queries if query.startswith("SELECT")]) == 1


async def test_a_database_restored_from_a_backup_makes_everything_be_asked_again(
    authenticator: Authenticator, store: KeyStore
) -> None:
    _, secret = await store.create("made after the backup")
    await authenticator.poll()
    await who(authenticator, bearer(secret))
    async with store.database.begin() as connection:
        await connection.execute(text("DELETE FROM api_keys"))
        await connection.execute(text("UPDATE counters SET value = 0"))

    await authenticator.poll()

    with pytest.raises(AuthenticationError):
        await who(authenticator, bearer(secret))
