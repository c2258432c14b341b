"""Who is asking: which credentials count, what is remembered, and for how long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from gateway.errors import AuthenticationError, MalformedHttpError, OverloadedError
from gateway.pipeline.authenticate import Authenticator, Headers, VirtualKey
from gateway.storage.database import Database
from gateway.storage.keys import KeyStore, open_key_store
from gateway.storage.schema import prepare_schema
from gateway.storage.statements import Row

FOREIGN = b"Bearer sk-ant-oat01-foreign-login-token"


class Clock:
    """Both clocks of an authenticator."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[KeyStore]:
    database = Database(f"sqlite:///{tmp_path}/gateway.db")
    await database.connect()
    await prepare_schema(database)
    yield await open_key_store(database, {})
    await database.aclose()


@pytest.fixture
def clock(store: KeyStore) -> Clock:
    store._clock = clock = Clock()
    return clock


@pytest.fixture
async def authenticator(store: KeyStore, clock: Clock) -> Authenticator:
    authenticator = Authenticator(store, clock=clock, monotonic=clock)
    await authenticator.poll()
    return authenticator


@pytest.fixture
def queries(store: KeyStore, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every statement that requests send to the database."""
    statements: list[str] = []
    fetch = store.database.fetch

    async def noted(statement: str, *values: Any) -> Sequence[Row]:
        statements.append(statement)
        return await fetch(statement, *values)

    monkeypatch.setattr(store.database, "fetch", noted)
    return statements


def _bearer(secret: str) -> Headers:
    return [(b"host", b"gateway"), (b"authorization", b"Bearer " + secret.encode()), (b"accept", b"*/*")]


async def _who(authenticator: Authenticator, headers: Headers) -> VirtualKey:
    return authenticator.check(authenticator.credentials(headers)) or await authenticator.look_up(
        authenticator.credentials(headers)
    )


async def test_a_key_is_looked_up_once_and_then_known(
    authenticator: Authenticator, store: KeyStore, queries: list[str]
) -> None:
    key, secret = await store.create("laptop")

    assert authenticator.check(authenticator.credentials(_bearer(secret))) is None
    assert await authenticator.look_up(authenticator.credentials(_bearer(secret))) == key
    queries.clear()
    assert authenticator.check(authenticator.credentials(_bearer(secret))) == key
    assert queries == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (b"authorization", b"Bearer %s"),
        (b"authorization", b"bearer %s"),
        (b"authorization", b"BEARER  %s "),
        (b"x-api-key", b"%s"),
        (b"api-key", b"%s"),
    ],
)
async def test_every_place_for_a_key_works(
    authenticator: Authenticator, store: KeyStore, name: bytes, value: bytes
) -> None:
    key, secret = await store.create("laptop")

    assert await _who(authenticator, [(name, value % secret.encode())]) == key


@pytest.mark.parametrize("value", [b"%s", b"Basic %s", b"Token %s", b"Bearer%s", b"Bearer\t%s", b"Bearer: %s"])
async def test_a_good_key_under_another_scheme_or_none_is_refused(
    authenticator: Authenticator, store: KeyStore, value: bytes
) -> None:
    _, secret = await store.create("laptop")

    with pytest.raises(AuthenticationError):
        await _who(authenticator, [(b"authorization", value % secret.encode())])


async def test_the_secret_knows_case_though_the_scheme_does_not(authenticator: Authenticator, store: KeyStore) -> None:
    await store.create("laptop", secret="gw-abcdefghijklmnop")

    with pytest.raises(AuthenticationError):
        await _who(authenticator, _bearer("GW-ABCDEFGHIJKLMNOP"))


@pytest.mark.parametrize("authorization", [FOREIGN, b"", b"Bearer", b"Bearer ", b"Basic dXNlcjpwYXNz"])
@pytest.mark.parametrize("name", [b"x-api-key", b"api-key"])
async def test_a_good_key_counts_beside_an_authorization_that_is_not_for_us(
    authenticator: Authenticator, store: KeyStore, name: bytes, authorization: bytes
) -> None:
    key, secret = await store.create("laptop")
    headers = [(b"authorization", authorization), (name, secret.encode())]

    assert await _who(authenticator, headers) == key
    assert authenticator.check(authenticator.credentials(headers)) == key


async def test_of_two_good_keys_the_bearer_counts(authenticator: Authenticator, store: KeyStore) -> None:
    bearer, first = await store.create("bearer")
    _, second = await store.create("header")
    headers = [(b"x-api-key", second.encode()), (b"authorization", b"Bearer " + first.encode())]
    await authenticator.look_up(
        authenticator.credentials([(b"x-api-key", second.encode())])
    )  # that the other is known must not matter

    assert await _who(authenticator, headers) == bearer
    assert authenticator.check(authenticator.credentials(headers)) == bearer


@pytest.mark.parametrize("name", [b"authorization", b"x-api-key", b"api-key"])
@pytest.mark.parametrize("mode", ["keys", "open"])
async def test_a_credential_header_that_is_there_twice_is_malformed(store: KeyStore, name: bytes, mode: str) -> None:
    authenticator = Authenticator(store, mode=mode)
    headers = [(name, b"Bearer one-of-them-0001"), (b"host", b"x"), (name, b"Bearer one-of-them-0001")]

    with pytest.raises(MalformedHttpError, match="twice"):
        authenticator.check(authenticator.credentials(headers))


async def test_unknown_revoked_expired_and_missing_keys_cannot_be_told_apart(
    authenticator: Authenticator, store: KeyStore, clock: Clock
) -> None:
    revoked, revoked_secret = await store.create("revoked")
    await store.revoke(revoked.id)
    _, expired_secret = await store.create("expired", expires_in=10)
    clock.now += 11
    said = set()
    for headers in ([], _bearer("gw-nobody-has-this-key"), _bearer(revoked_secret), _bearer(expired_secret)):
        for _ in range(2):  # from the database, then from memory
            with pytest.raises(AuthenticationError) as caught:
                await _who(authenticator, headers)
            said.add((caught.value.status, caught.value.code, caught.value.message, str(caught.value.headers)))

    assert len(said) == 1


@pytest.mark.parametrize("secret", ["", "short", "k" * 257])
async def test_what_cannot_be_a_key_is_refused_without_asking_the_database(
    authenticator: Authenticator, queries: list[str], secret: str
) -> None:
    queries.clear()

    with pytest.raises(AuthenticationError):
        authenticator.check(authenticator.credentials(_bearer(secret)))
    with pytest.raises(AuthenticationError):
        await authenticator.look_up(authenticator.credentials(_bearer(secret)))
    assert queries == []


async def test_a_refusal_is_remembered_for_two_seconds(
    authenticator: Authenticator, clock: Clock, queries: list[str]
) -> None:
    headers = _bearer("gw-nobody-has-this-key")
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
        await _who(authenticator, _bearer("gw-imported-in-a-moment"))
    key, _ = await store.create("imported", secret="gw-imported-in-a-moment")

    await authenticator.poll()

    assert await _who(authenticator, _bearer("gw-imported-in-a-moment")) == key


async def test_a_known_key_expires_on_time_without_the_database(
    authenticator: Authenticator, store: KeyStore, clock: Clock
) -> None:
    key, secret = await store.create("short-lived", expires_in=60)
    assert await _who(authenticator, _bearer(secret)) == key
    clock.now += 59.9
    assert authenticator.check(authenticator.credentials(_bearer(secret))) == key
    clock.now += 0.2

    with pytest.raises(AuthenticationError):
        authenticator.check(authenticator.credentials(_bearer(secret)))


async def test_a_revocation_is_seen_by_the_next_poll(authenticator: Authenticator, store: KeyStore) -> None:
    key, secret = await store.create("lost")
    other, other_secret = await store.create("kept")
    await _who(authenticator, _bearer(secret))
    await _who(authenticator, _bearer(other_secret))
    await store.revoke(key.id)

    await authenticator.poll()

    with pytest.raises(AuthenticationError):
        await _who(authenticator, _bearer(secret))
    assert authenticator.check(authenticator.credentials(_bearer(other_secret))) == other


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
    assert await authenticator.look_up(authenticator.credentials(_bearer(secret))) == key
    monkeypatch.undo()

    assert authenticator.check(authenticator.credentials(_bearer(secret))) is None
    with pytest.raises(AuthenticationError):
        await authenticator.look_up(authenticator.credentials(_bearer(secret)))


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
    await _who(authenticator, _bearer(secret))
    async with store.database.begin() as connection:
        await connection.execute(text("DELETE FROM api_keys"))
        await connection.execute(text("UPDATE counters SET value = 0"))

    await authenticator.poll()

    with pytest.raises(AuthenticationError):
        await _who(authenticator, _bearer(secret))


async def test_without_the_database_known_keys_work_for_five_minutes_and_others_get_503(
    authenticator: Authenticator, store: KeyStore, clock: Clock
) -> None:
    key, secret = await store.create("known")
    _, fresh = await store.create("never seen")
    await _who(authenticator, _bearer(secret))
    foreign = [(b"authorization", FOREIGN), (b"x-api-key", secret.encode())]
    await store.database.aclose()

    clock.now += 299
    assert authenticator.check(authenticator.credentials(_bearer(secret))) == key
    assert await _who(authenticator, foreign) == key
    with pytest.raises(OverloadedError) as caught:
        await _who(authenticator, _bearer(fresh))
    assert (caught.value.status, caught.value.code) == (503, "database_unavailable")
    assert "retry-after" in caught.value.headers
    clock.now += 2
    assert authenticator.check(authenticator.credentials(_bearer(secret))) is None
    with pytest.raises(OverloadedError):
        await authenticator.look_up(authenticator.credentials(_bearer(secret)))


async def test_a_database_that_does_not_answer_is_not_waited_for_long(
    authenticator: Authenticator, store: KeyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang(_digests: object) -> None:
        await asyncio.Event().wait()

    _, secret = await store.create("never seen")
    monkeypatch.setattr(store, "find", hang)
    monkeypatch.setattr("gateway.pipeline.authenticate._ANSWER_SECONDS", 0.02)

    with pytest.raises(OverloadedError):
        await authenticator.look_up(authenticator.credentials(_bearer(secret)))


async def test_once_an_outage_is_known_a_foreign_login_beside_a_known_key_costs_no_waiting(
    store: KeyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.pipeline.authenticate._POLL_SECONDS", 0.01)
    authenticator = Authenticator(store)
    await authenticator.poll()
    key, secret = await store.create("known")
    await authenticator.poll()
    await _who(authenticator, _bearer(secret))
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
    await _who(authenticator, _bearer(secret))

    async def make_and_poll(number: int) -> None:
        await store.create(f"other {number}")
        await authenticator.poll()

    await asyncio.gather(*(make_and_poll(number) for number in range(8)), authenticator.poll())

    assert authenticator.check(authenticator.credentials(_bearer(secret))) == key


async def test_nothing_is_trusted_before_changes_are_followed(store: KeyStore) -> None:
    authenticator = Authenticator(store)
    key, secret = await store.create("laptop")
    assert await authenticator.look_up(authenticator.credentials(_bearer(secret))) == key

    assert authenticator.check(authenticator.credentials(_bearer(secret))) is None
    await authenticator.poll()
    assert await _who(authenticator, _bearer(secret)) == key
    assert authenticator.check(authenticator.credentials(_bearer(secret))) == key


async def test_many_requests_with_one_new_key_ask_once(
    authenticator: Authenticator, store: KeyStore, queries: list[str]
) -> None:
    key, secret = await store.create("popular")
    queries.clear()

    assert (
        await asyncio.gather(*(authenticator.look_up(authenticator.credentials(_bearer(secret))) for _ in range(100)))
        == [key] * 100
    )
    assert len([query for query in queries if query.startswith("SELECT")]) == 1


async def test_a_client_that_leaves_does_not_take_the_answer_from_others(
    authenticator: Authenticator, store: KeyStore
) -> None:
    key, secret = await store.create("popular")
    leaving = asyncio.create_task(authenticator.look_up(authenticator.credentials(_bearer(secret))))
    staying = asyncio.create_task(authenticator.look_up(authenticator.credentials(_bearer(secret))))
    await asyncio.sleep(0)
    leaving.cancel()

    assert await staying == key
    assert leaving.cancelled()


@pytest.mark.parametrize("headers", [[], [(b"authorization", b"Bearer whatever-it-may-be")], [(b"api-key", b"x")]])
async def test_open_mode_lets_everybody_in(store: KeyStore, headers: Headers, queries: list[str]) -> None:
    authenticator = Authenticator(store, mode="open")

    key = authenticator.check(authenticator.credentials(headers))

    assert key is not None
    assert (key.id, key.allows("anything")) == ("anonymous", True)
    assert await authenticator.look_up(authenticator.credentials(headers)) == key
    assert queries == []


async def test_the_background_task_outlives_an_outage(store: KeyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.pipeline.authenticate._POLL_SECONDS", 0.01)
    authenticator = Authenticator(store)
    authenticator.start()
    key, secret = await store.create("laptop")
    await store.database.aclose()
    await asyncio.sleep(0.05)
    await store.database.connect()
    assert await _who(authenticator, _bearer(secret)) == key
    await store.revoke(key.id)
    async with asyncio.timeout(5):
        while authenticator._known:
            await asyncio.sleep(0.01)
    await authenticator.aclose()

    with pytest.raises(AuthenticationError):
        await _who(authenticator, _bearer(secret))
