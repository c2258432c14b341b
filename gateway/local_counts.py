"""Counts prompts for local targets by their models' own tokenizers, where no gateway runs that has them loaded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import msgspec

from adapters.target import Target
from adapters.types import Operation
from gateway.config.provider_settings import ProviderSettings
from gateway.config.schema import Settings
from gateway.engines import engine_config
from local_engine.count import count_chat, count_texts
from local_engine.engine import LocalEngine
from local_engine.errors import LocalEngineError

_LEAST_CONTEXT: Final = 64
_LOAD_SECONDS: Final = 600.0
_TEXTS: Final = {Operation.COMPLETIONS: "prompt", Operation.EMBEDDINGS: "input"}


class LocalCounts:
    """Starts the engine of each target it is asked about, with the least of memory, and ends it again."""

    def __init__(self, settings: Settings, notify: Callable[[str], None]) -> None:
        """*notify* is told of an engine that cannot be started."""
        self._settings = settings
        self._notify = notify

    def __call__(self, target: Target, operation: Operation, body: bytes) -> int | None:
        """Tokens of the prompt in *body*; None for targets elsewhere, and where the engine cannot tell."""
        provider = self._settings.providers[target.provider]
        if not provider.local:
            return None
        try:
            return asyncio.run(_count(provider, operation, msgspec.json.decode(body)))
        except LocalEngineError as error:
            self._notify(f"{target.name} cannot count: {error}")
            return None


async def _count(provider: ProviderSettings, operation: Operation, body: dict[str, Any]) -> int:
    config = engine_config(provider)
    least = replace(config, context=_LEAST_CONTEXT, slots=1, cache_ram_mib=0, batch=None, idle_unload_seconds=None)
    engine = LocalEngine(least)
    try:
        await engine.start()
        await engine.wait_ready(_LOAD_SECONDS)
        if operation is Operation.CHAT:
            return await count_chat(engine.address, body)
        value = body[_TEXTS[operation]]
        several = isinstance(value, list) and bool(value) and not isinstance(value[0], int)
        return await count_texts(engine.address, value if several else [value])
    finally:
        await engine.stop()
