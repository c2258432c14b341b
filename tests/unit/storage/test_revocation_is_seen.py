"""Two workers on one database: what one does to a key, the other sees in time."""

from __future__ import annotations

import asyncio
import time

import pytest

from gateway.errors import AuthenticationError
from gateway.pipeline.authenticate import Authenticator
from gateway.storage.database import Database
from gateway.storage.keys import open_key_store


async def test_a_revocation_and_a_new_key_are_seen_by_another_worker_within_two_seconds(
    database: Database, database_url: str
) -> None:
    elsewhere = Database(database_url)
    await elsewhere.connect()
    ours, theirs = await open_key_store(database), await open_key_store(elsewhere)
    worker = Authenticator(theirs)
    worker.start()
    key, secret = await ours.create("laptop")
    headers = [(b"authorization", b"Bearer " + secret.encode())]

    assert await worker.look_up(worker.credentials(headers)) == key
    await worker.poll()
    assert await worker.look_up(worker.credentials(headers)) == key
    assert worker.check(worker.credentials(headers)) == key

    await ours.revoke(key.id)
    revoked_at = time.monotonic()
    try:
        async with asyncio.timeout(5):
            while worker.check(worker.credentials(headers)) is not None:
                await asyncio.sleep(0.02)
        seen_after = time.monotonic() - revoked_at
        with pytest.raises(AuthenticationError):
            await worker.look_up(worker.credentials(headers))
    finally:
        await worker.aclose()
        await elsewhere.aclose()

    assert seen_after < 2.0
