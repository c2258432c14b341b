"""Where the pepper comes from, and what happens when it is not the right one."""

from __future__ import annotations

import hmac
import stat

import pytest

from gateway.storage.database import Database
from gateway.storage.digest import KeyDigest
from gateway.storage.errors import PepperError
from gateway.storage.pepper import load_digest


@pytest.mark.parametrize("pepper", [b"x", b"sixteen bytes ok", b"p" * 64, b"longer than one block of SHA-256 " * 3])
def test_the_digest_is_hmac_sha256(pepper: bytes) -> None:
    digest = KeyDigest(pepper)

    for secret in (b"", b"gw-something", b"s" * 256):
        assert digest(secret) == hmac.digest(pepper, secret, "sha256")


async def test_a_pepper_is_made_once_in_a_private_file_beside_the_database(database: Database) -> None:
    first = await load_digest(database, {})
    path = database.url.beside(".pepper")

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert (await load_digest(database, {}))(b"secret") == first(b"secret")
    assert [file.name for file in path.parent.glob("*pepper*")] == [path.name]


async def test_the_variable_wins_and_no_file_is_made(database: Database) -> None:
    digest = await load_digest(database, {"GATEWAY_KEY_PEPPER": "from the environment"})

    assert digest(b"secret") == hmac.digest(b"from the environment", b"secret", "sha256")
    assert not database.url.beside(".pepper").exists()


async def test_another_pepper_than_the_first_is_refused_without_telling_either(database: Database) -> None:
    await load_digest(database, {"GATEWAY_KEY_PEPPER": "the-first-pepper"})

    with pytest.raises(PepperError, match=r"GATEWAY_KEY_PEPPER is not the one") as caught:
        await load_digest(database, {"GATEWAY_KEY_PEPPER": "the-second-pepper"})

    assert "the-second-pepper" not in str(caught.value)


async def test_a_lost_pepper_file_is_an_error_and_no_new_one_is_made(database: Database) -> None:
    await load_digest(database, {})
    path = database.url.beside(".pepper")
    path.unlink()

    with pytest.raises(PepperError, match="is missing"):
        await load_digest(database, {})

    assert not path.exists()


async def test_a_pepper_too_short_to_protect_anything_is_refused(database: Database) -> None:
    with pytest.raises(PepperError, match="too short"):
        await load_digest(database, {"GATEWAY_KEY_PEPPER": "salt"})

    database.url.beside(".pepper").write_text("")
    with pytest.raises(PepperError, match="does not hold a pepper"):
        await load_digest(database, {})
