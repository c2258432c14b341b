"""Sends the battery to a real target, one request after another, by the gateway's own HTTP client."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Final

from adapters.errors import ProviderError
from adapters.rate_limits import parse_retry_after
from adapters.target import Target
from adapters.types import Operation
from gateway.catalog import Catalog, Model
from gateway.deadlines import Deadlines
from gateway.pipeline.backends import Backends
from gateway.probe.seen import Seen
from gateway.settings import Settings
from gateway.upstream.base import RequestHead, Upstream
from gateway.upstream.http1 import Http1Upstream

_SECONDS: Final = 120.0
"""For one answer, as a slow machine may have to load the model first."""
_MOST_BYTES: Final = 8 * 1024 * 1024
_TRIES: Final = 4
_WAIT_SECONDS: Final = 5.0
_LONGEST_WAIT_SECONDS: Final = 120.0
_SHORTEST_SECRET: Final = 4
_TOO_MANY: Final = 429
_LATER: Final = (_TOO_MANY, 498, 502, 503, 504, 529)

Pause = Callable[[float], Awaitable[None]]


class NoChatError(Exception):
    """The target has no chats, which is all that is probed."""


@dataclass(slots=True)
class Wire:
    """Sends requests; repeats one that came too early, after the wait that the provider asks for."""

    upstream: Upstream
    head: RequestHead
    """Of a chat."""
    root: str
    """The path of the base URL."""
    secrets: tuple[bytes, ...]
    pause: Pause = asyncio.sleep
    waited: list[float] = field(default_factory=list)
    """The seconds waited so far."""

    async def send(self, method: str, path: str, body: bytes) -> Seen:
        """The answer, without the provider's key; status 0 where there was none."""
        head = replace(self.head, method=method, path=self.root + path)
        seen = await self._once(head, body)
        for _ in range(_TRIES - 1):
            if seen.status not in _LATER:
                break
            busy = seen.status == _TOO_MANY
            wait = parse_retry_after(seen.headers)
            wait = min(wait if wait is not None else _WAIT_SECONDS, _LONGEST_WAIT_SECONDS)
            self.waited.append(wait)
            await self.pause(wait)
            seen = await self._once(head, body)
            if not busy:
                break  # a server that fails twice over the same request will go on to
        return seen

    async def _once(self, head: RequestHead, body: bytes) -> Seen:
        response = None
        try:
            async with asyncio.timeout(_SECONDS):
                response = await self.upstream.send(head, body)
                raw = await response.read(_MOST_BYTES)
        except ProviderError as error:
            return Seen(0, {}, self._masked(str(error).encode()))
        except TimeoutError:
            return Seen(0, {}, f"nothing for {_SECONDS:g} s".encode())
        finally:
            if response is not None:
                response.close()
        return Seen(response.status, dict(response.headers), self._masked(raw))

    def _masked(self, raw: bytes) -> bytes:
        """Some repeat a refused key in their answer."""
        for secret in self.secrets:
            raw = raw.replace(secret, b"***")
        return raw


@contextlib.asynccontextmanager
async def wire_to(
    settings: Settings, catalog: Catalog, model: Model, target: Target, pause: Pause = asyncio.sleep
) -> AsyncIterator[Wire]:
    """The way to a target as the gateway has it: its address, key, headers and certificates.

    Raises `NoChatError` where the target has no chats.
    """
    deadlines = Deadlines()
    upstream = Http1Upstream(deadlines)
    try:
        backends = Backends(settings, catalog, upstream, {})
        backend = next(one for one in backends.route(model).backends if one.target is target)
        head = backend.head(Operation.CHAT, 0.0)
        endpoint = target.spec.endpoints.get(Operation.CHAT)
        if head is None or endpoint is None or endpoint.path is None:
            raise NoChatError(target.name)
        provider = settings.providers[target.provider]
        texts = (*provider.keys, *(value.get_secret_value() for value in provider.headers.values()))
        secrets = tuple(text.encode() for text in texts if len(text) >= _SHORTEST_SECRET)
        yield Wire(upstream, head, head.path.removesuffix(endpoint.path), secrets, pause)
    finally:
        await upstream.aclose()
        deadlines.close()
