"""The database is away, slow or asked by many at once: who is let in, and who waits."""

from __future__ import annotations

import asyncio

import pytest

from gateway.errors import AuthenticationError, OverloadedError
from gateway.pipeline.authenticate import Authenticator
from gateway.storage.keys import KeyStore
from tests.unit.pipeline.authentication.asking import FOREIGN, Clock, bearer, who


async def test_without_the_database_known_keys_work_for_five_minutes_and_others_get_503(
    authenticator: Authenticator, store: KeyStore, clock: Clock
) -> None:
    key, secret = await store.create("known")
    _, fresh = await store.create("never seen")
    await who(authenticator, bearer(secret))
    foreign = [(b"authorization", FOREIGN), (b"x-api-key", secret.encode())]
    await store.database.aclose()

    clock.now += 299
    assert authenticator.check(authenticator.credentials(bearer(secret))) == key
    assert await who(authenticator, foreign) == key
    with pytest.raises(OverloadedError) as caught:
        await who(authenticator, bearer(fresh))
    assert (caught.value.status, caught.value.code) == (503, "database_unavailable")
    assert "retry-after" in caught.value.headers
    clock.now += 2
    assert authenticator.check(authenticator.credentials(bearer(secret))) is None
    with pytest.raises(OverloadedError):
        await authenticator.look_up(authenticator.credentials(bearer(secret)))


async def test_a_database_that_does_not_answer_is_not_waited_for_long(
    authenticator: Authenticator, store: KeyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang(_digests: object) -> None:
        await asyncio.Event().wait()

    _, secret = await store.create("never seen")
    monkeypatch.setattr(store, "find", hang)
    monkeypatch.setattr("gateway.pipeline.authenticate._ANSWER_SECONDS", 0.02)

    with pytest.raises(OverloadedError):
        await authenticator.look_up(authenticator.credentials(bearer(secret)))


async def test_once_an_outage_is_known_a_foreign_login_beside_a_known_key_costs_no_waiting(
    store: KeyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.pipeline.authenticate._POLL_SECONDS", 0.01)
    authenticator = Authenticator(store)
    await authenticator.poll()
    key, secret = await store.create("known")
    await authenticator.poll()
    await who(authenticator, bearer(secret))
    await store.database.aclose()
    authenticator.start()
    async with asyncio.timeout(5):
        while not authenticator._failing:
            await asyncio.sleep(0.01)

    async def unexpected(_digests: object) -> None:
        raise AssertionError("the database is asked")

    monkeypatch.setattr(store, "find", unexpected)
    found = await authenticator.look_up(
        authenticator.credentials([(b"authorization", FOREIGN), (b"x-api-key", secret.encode())])
    )
    await authenticator.aclose()

    assert found == key


async def test_polls_that_overlap_do_not_mistake_each_other_for_a_restored_backup(
    authenticator: Authenticator, store: KeyStore
) -> None:
    key, secret = await store.create("kept")
    await who(authenticator, bearer(secret))

    async def make_and_poll(number: int) -> None:
        await store.create(f"other {number}")
        await authenticator.poll()

    await asyncio.gather(*(make_and_poll(number) for number in range(8)), authenticator.poll())

    assert authenticator.check(authenticator.credentials(bearer(secret))) == key


async def test_nothing_is_trusted_before_changes_are_followed(store: KeyStore) -> None:
    authenticator = Authenticator(store)
    key, secret = await store.create("laptop")
    assert await authenticator.look_up(authenticator.credentials(bearer(secret))) == key

    assert authenticator.check(authenticator.credentials(bearer(secret))) is None
    await authenticator.poll()
    assert await who(authenticator, bearer(secret)) == key
    assert authenticator.check(authenticator.credentials(bearer(secret))) == key


async def test_many_requests_with_one_new_key_ask_once(
    authenticator: Authenticator, store: KeyStore, queries: list[str]
) -> None:
    key, secret = await store.create("popular")
    queries.clear()

    assert (
        await asyncio.gather(*(authenticator.look_up(authenticator.credentials(bearer(secret))) for _ in range(100)))
        == [key] * 100
    )
    assert len([query for query in queries if query.startswith("SELECT")]) == 1


async def test_a_client_that_leaves_does_not_take_the_answer_from_others(
    authenticator: Authenticator, store: KeyStore
) -> None:
    key, secret = await store.create("popular")
    leaving = asyncio.create_task(authenticator.look_up(authenticator.credentials(bearer(secret))))
    staying = asyncio.create_task(authenticator.look_up(authenticator.credentials(bearer(secret))))
    await asyncio.sleep(0)
    leaving.cancel()

    assert await staying == key
    assert leaving.cancelled()


async def test_the_background_task_outlives_an_outage(store: KeyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.pipeline.authenticate._POLL_SECONDS", 0.01)
    authenticator = Authenticator(store)
    authenticator.start()
    key, secret = await store.create("laptop")
    await store.database.aclose()
    await asyncio.sleep(0.05)
    await store.database.connect()
    assert await who(authenticator, bearer(secret)) == key
    await store.revoke(key.id)
    async with asyncio.timeout(5):
        while authenticator._known:
            await asyncio.sleep(0.01)
    await authenticator.aclose()

    with pytest.raises(AuthenticationError):
        await who(authenticator, bearer(secret))
