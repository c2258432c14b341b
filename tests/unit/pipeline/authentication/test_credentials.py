"""Which credentials of a request count, and that all refusals are alike."""

from __future__ import annotations

import pytest

from gateway.errors import AuthenticationError, MalformedHttpError
from gateway.pipeline.authenticate import Authenticator, Headers
from gateway.storage.keys import KeyStore
from tests.unit.pipeline.authentication.asking import FOREIGN, Clock, bearer, who


async def test_a_key_is_looked_up_once_and_then_known(
    authenticator: Authenticator, store: KeyStore, queries: list[str]
) -> None:
    key, secret = await store.create("laptop")

    assert authenticator.check(authenticator.credentials(bearer(secret))) is None
    assert await authenticator.look_up(authenticator.credentials(bearer(secret))) == key
    queries.clear()
    assert authenticator.check(authenticator.credentials(bearer(secret))) == key
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

    assert await who(authenticator, [(name, value % secret.encode())]) == key


@pytest.mark.parametrize("value", [b"%s", b"Basic %s", b"Token %s", b"Bearer%s", b"Bearer\t%s", b"Bearer: %s"])
async def test_a_good_key_under_another_scheme_or_none_is_refused(
    authenticator: Authenticator, store: KeyStore, value: bytes
) -> None:
    _, secret = await store.create("laptop")

    with pytest.raises(AuthenticationError):
        await who(authenticator, [(b"authorization", value % secret.encode())])


async def test_the_secret_knows_case_though_the_scheme_does_not(authenticator: Authenticator, store: KeyStore) -> None:
    await store.create("laptop", secret="gw-abcdefghijklmnop")

    with pytest.raises(AuthenticationError):
        await who(authenticator, bearer("GW-ABCDEFGHIJKLMNOP"))


@pytest.mark.parametrize("authorization", [FOREIGN, b"", b"Bearer", b"Bearer ", b"Basic dXNlcjpwYXNz"])
@pytest.mark.parametrize("name", [b"x-api-key", b"api-key"])
async def test_a_good_key_counts_beside_an_authorization_that_is_not_for_us(
    authenticator: Authenticator, store: KeyStore, name: bytes, authorization: bytes
) -> None:
    key, secret = await store.create("laptop")
    headers = [(b"authorization", authorization), (name, secret.encode())]

    assert await who(authenticator, headers) == key
    assert authenticator.check(authenticator.credentials(headers)) == key


async def test_of_two_good_keys_the_bearer_counts(authenticator: Authenticator, store: KeyStore) -> None:
    bearer, first = await store.create("bearer")
    _, second = await store.create("header")
    headers = [(b"x-api-key", second.encode()), (b"authorization", b"Bearer " + first.encode())]
    await authenticator.look_up(
        authenticator.credentials([(b"x-api-key", second.encode())])
    )  # that the other is known must not matter

    assert await who(authenticator, headers) == bearer
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
    for headers in ([], bearer("gw-nobody-has-this-key"), bearer(revoked_secret), bearer(expired_secret)):
        for _ in range(2):  # from the database, then from memory
            with pytest.raises(AuthenticationError) as caught:
                await who(authenticator, headers)
            said.add((caught.value.status, caught.value.code, caught.value.message, str(caught.value.headers)))

    assert len(said) == 1


@pytest.mark.parametrize("secret", ["", "short", "k" * 257])
async def test_what_cannot_be_a_key_is_refused_without_asking_the_database(
    authenticator: Authenticator, queries: list[str], secret: str
) -> None:
    queries.clear()

    with pytest.raises(AuthenticationError):
        authenticator.check(authenticator.credentials(bearer(secret)))
    with pytest.raises(AuthenticationError):
        await authenticator.look_up(authenticator.credentials(bearer(secret)))
    assert queries == []


@pytest.mark.parametrize("headers", [[], [(b"authorization", b"Bearer whatever-it-may-be")], [(b"api-key", b"x")]])
async def test_open_mode_lets_everybody_in(store: KeyStore, headers: Headers, queries: list[str]) -> None:
    authenticator = Authenticator(store, mode="open")

    key = authenticator.check(authenticator.credentials(headers))

    assert key is not None
    assert (key.id, key.allows("anything")) == ("anonymous", True)
    assert await authenticator.look_up(authenticator.credentials(headers)) == key
    assert queries == []
