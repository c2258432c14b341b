"""The first step: who is asking."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final

from gateway.errors import AuthenticationError, MalformedHttpError, OverloadedError
from gateway.storage.errors import StorageError
from gateway.storage.keys import KeyRecord, KeyStore
from gateway.storage.virtual_key import ANONYMOUS, VirtualKey

__all__ = ["AuthMode", "Authenticator", "VirtualKey"]

Headers = Sequence[tuple[bytes, bytes]]
Credentials = tuple[bytes, ...]
"""The digests of what could be a key in a request's headers, in the order in which they count."""

_POLL_SECONDS: Final = 1.0
_ANSWER_SECONDS: Final = 3.0
_TRUSTED_SECONDS: Final = 300.0
_REFUSED_SECONDS: Final = 2.0
_MAX_REFUSED: Final = 10_000
_MAX_KNOWN: Final = 100_000
_SHORTEST, _LONGEST = 16, 256

_log = logging.getLogger(__name__)


class AuthMode(StrEnum):
    """The values of ``auth.mode``."""

    KEYS = "keys"
    OPEN = "open"


class Authenticator:
    """Checks the keys of requests, from memory wherever it can.

    A revocation in any process is seen by `poll` within a second or so; without the database, keys that were
    seen before work for five more minutes. All that is remembered is kept under the digest of the whole credential.
    """

    def __init__(
        self,
        store: KeyStore,
        *,
        mode: AuthMode | str = AuthMode.KEYS,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._digest = store.digest
        self._open = AuthMode(mode) is AuthMode.OPEN
        self._clock = clock
        self._monotonic = monotonic
        self._known: dict[bytes, VirtualKey] = {}
        self._refused: dict[bytes, float] = {}
        self._asking: dict[Credentials, asyncio.Task[VirtualKey | None]] = {}
        self._polling = asyncio.Lock()
        self._seen_change: int | None = None
        self._trusted_until = float("-inf")
        self._failing = False
        self._task: asyncio.Task[None] | None = None

    def set_mode(self, mode: AuthMode | str) -> None:
        """Ask for keys, or don't, from the next request on; what is known of keys stays."""
        self._open = AuthMode(mode) is AuthMode.OPEN

    def credentials(self, headers: Headers) -> Credentials:
        """What `check` and `look_up` take; `MalformedHttpError` for a credential header that is there twice."""
        return tuple(map(self._digest, find_credentials(headers)))

    def check(self, credentials: Credentials) -> VirtualKey | None:
        """The key of a request, or None when only `look_up` can tell. Never waits.

        Raises `AuthenticationError` for what is certainly no good key.
        """
        if self._open:
            return ANONYMOUS
        for digest in credentials:
            key = self._known.get(digest)
            if key is not None:
                if self._monotonic() > self._trusted_until:
                    return None
                if key.expires_at is None or self._clock() < key.expires_at:
                    return key
            elif self._refused.get(digest, 0.0) <= self._monotonic():
                return None
        raise AuthenticationError

    async def look_up(self, credentials: Credentials) -> VirtualKey:
        """The key of a request, asking the database; call it where `check` gave None.

        Raises as `check` does, and `OverloadedError` when the database does not answer and nothing is remembered.
        """
        if self._open:
            return ANONYMOUS
        if not credentials:
            raise AuthenticationError
        # Requests that come with the same credentials while the question is out share its answer.
        task = self._asking.get(credentials)
        if task is None:
            task = asyncio.create_task(self._ask(credentials))
            self._asking[credentials] = task
            task.add_done_callback(lambda done: self._answered(credentials, done))
        key = await asyncio.shield(task)
        if key is None:
            raise AuthenticationError
        return key

    def start(self) -> None:
        """Begin to follow changes in the background."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="key poll")

    async def aclose(self) -> None:
        """Stop following changes."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def poll(self) -> None:
        """See now what has changed; `StorageError` when the database does not answer."""
        async with self._polling:
            started = self._monotonic()
            newest = await self._store.last_change()
            if self._seen_change is None or newest < self._seen_change:
                # The first poll, or a database restored from a backup: nothing remembered can be relied on.
                self._known.clear()
                self._refused.clear()
            elif newest > self._seen_change:
                for record in await self._store.changes_since(self._seen_change):
                    self._refused.pop(record.digest, None)
                    if record.revoked_at is not None:
                        self._known.pop(record.digest, None)
                    elif record.digest in self._known:
                        self._known[record.digest] = record.key
            self._seen_change = newest
            self._trusted_until = started + _TRUSTED_SECONDS

    async def _run(self) -> None:
        while True:
            try:
                await self.poll()
                if self._failing:
                    _log.warning("keys are followed again")
                    self._failing = False
            except StorageError as error:
                if not self._failing:
                    _log.warning("changes of keys cannot be seen, known keys go on for 5 minutes: %s", error)
                    self._failing = True
            except Exception:  # noqa: BLE001 - the loop must outlive a bug in one round
                _log.exception("following the keys met a bug")
            await asyncio.sleep(_POLL_SECONDS)

    def _answered(self, question: Credentials, task: asyncio.Task[VirtualKey | None]) -> None:
        del self._asking[question]
        # When all who asked have left, nobody else takes note of a failure, and asyncio would complain.
        if not task.cancelled():
            task.exception()

    async def _ask(self, digests: Credentials) -> VirtualKey | None:
        # While the database is away, a client that sends a foreign login beside its key must not wait for it each time.
        if self._failing and (key := self._remembered(digests)) is not None:
            return key
        seen_change = self._seen_change
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                found = await self._store.find(digests)
        except (StorageError, TimeoutError) as error:
            if (key := self._remembered(digests)) is not None:
                return key
            raise OverloadedError(
                "API keys cannot be checked right now. Try again shortly.",
                code="database_unavailable",
                headers={"retry-after": "2"},
            ) from error
        now = self._clock()
        for digest in digests:
            record = found.get(digest)
            if record is not None and record.is_live(now):
                # A change that was seen meanwhile may be the revocation of this very key: then it is good for
                # this request, which came before it, but not remembered.
                if seen_change == self._seen_change:
                    self._remember(record)
                return record.key
            self._refuse(digest)
        return None

    def _remembered(self, digests: Credentials) -> VirtualKey | None:
        if self._monotonic() <= self._trusted_until:
            for digest in digests:
                key = self._known.get(digest)
                if key is not None and (key.expires_at is None or self._clock() < key.expires_at):
                    return key
        return None

    def _remember(self, record: KeyRecord) -> None:
        self._refused.pop(record.digest, None)
        if len(self._known) >= _MAX_KNOWN:
            del self._known[next(iter(self._known))]
        self._known[record.digest] = record.key

    def _refuse(self, digest: bytes) -> None:
        self._known.pop(digest, None)
        # All live equally long, so the first in the dictionary is the oldest, if a renewed one goes to the end.
        self._refused.pop(digest, None)
        if len(self._refused) >= _MAX_REFUSED:
            del self._refused[next(iter(self._refused))]
        self._refused[digest] = self._monotonic() + _REFUSED_SECONDS


def find_credentials(headers: Headers) -> list[bytes]:
    """What could be a key in *headers*, in the order in which it counts: bearer, x-api-key, api-key.

    A client's login for some other service may stand beside our key, so each is tried in turn.
    """
    bearer = x_api_key = api_key = None
    for name, value in headers:
        if name == b"authorization":
            if bearer is not None:
                raise _twice(name)
            bearer = value
        elif name == b"x-api-key":
            if x_api_key is not None:
                raise _twice(name)
            x_api_key = value
        elif name == b"api-key":
            if api_key is not None:
                raise _twice(name)
            api_key = value
    credentials = []
    if bearer is not None:
        scheme, _, token = bearer.partition(b" ")
        token = token.strip()
        if scheme.lower() == b"bearer" and _SHORTEST <= len(token) <= _LONGEST:
            credentials.append(token)
    if x_api_key is not None and _SHORTEST <= len(x_api_key) <= _LONGEST:
        credentials.append(x_api_key)
    if api_key is not None and _SHORTEST <= len(api_key) <= _LONGEST:
        credentials.append(api_key)
    return credentials


def _twice(name: bytes) -> MalformedHttpError:
    # Whoever stands in front of us may have looked at the other one.
    return MalformedHttpError(f"The header '{name.decode('latin-1')}' is there twice.")
