"""A body sink that remembers what it was given, and what a test may wait for."""

from __future__ import annotations

import asyncio

from adapters.errors import ProviderError


class CollectingSink:
    """Implements `BodySink`."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.ends: list[ProviderError | None] = []
        self._changed = asyncio.Event()

    @property
    def data(self) -> bytes:
        return b"".join(self.pieces)

    def feed(self, data: bytes) -> None:
        assert not self.ends, "fed after the end"
        assert data, "fed with nothing"
        self.pieces.append(data)
        self._changed.set()

    def finish(self, error: ProviderError | None) -> None:
        self.ends.append(error)
        self._changed.set()

    async def wait_for_bytes(self, count: int, seconds: float = 5.0) -> None:
        async with asyncio.timeout(seconds):
            while sum(map(len, self.pieces)) < count:
                self._changed.clear()
                await self._changed.wait()

    async def wait_for_end(self, seconds: float = 5.0) -> ProviderError | None:
        """How the body ended; fails unless that was said exactly once."""
        async with asyncio.timeout(seconds):
            while not self.ends:
                self._changed.clear()
                await self._changed.wait()
        await asyncio.sleep(0)
        assert len(self.ends) == 1, "finished more than once"
        return self.ends[0]
