"""The local engines of a configuration: owned by a single process, or by the parent of several workers."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from gateway.__about__ import ENV_PREFIX
from gateway.catalog import local_model_name
from gateway.config.schema import ProviderSettings, Settings
from local_engine.attached import AttachedEngine
from local_engine.engine import LocalEngine
from local_engine.errors import LocalEngineError
from local_engine.options import EngineConfig
from local_engine.pull import pull
from local_engine.registry import DEFAULT_MODEL, default_store

_log = logging.getLogger(__name__)

SHARED_VARIABLE: Final = ENV_PREFIX + "SHARED_ENGINES"
"""Tells a worker where the engines are that its parent owns; never set by people."""


def owned_engines(settings: Settings) -> dict[str, LocalEngine]:
    """An engine for each local provider, not started yet, by the provider's name."""
    return {name: LocalEngine(_config(provider)) for name, provider in settings.providers.items() if provider.local}


def share(engines: Mapping[str, LocalEngine]) -> str:
    """What `attached_engines` needs to reach *engines*, which must have been started."""
    return json.dumps(
        {provider: [engine.name, engine.socket_path, engine.slots] for provider, engine in engines.items()}
    )


def attached_engines(shared: str) -> dict[str, AttachedEngine]:
    """The engines another process shares, as seen from here."""
    return {provider: AttachedEngine(*told) for provider, told in json.loads(shared).items()}


async def fetch_models(settings: Settings, before: Settings) -> None:
    """Bring the models that *settings* want and *before* did not; one that cannot be had is said, and stops nothing."""
    for name in sorted(_models(settings) - _models(before)):
        _log.info("fetching the local model %s, unless it is here", name)
        try:
            await asyncio.to_thread(pull, name, default_store())
        except LocalEngineError as error:
            _log.warning("going on without the local model %s: %s", name, error)


def _models(settings: Settings) -> set[str]:
    return {
        provider.model or DEFAULT_MODEL
        for provider in settings.providers.values()
        if provider.local and not provider.model_path
    }


def _config(provider: ProviderSettings) -> EngineConfig:
    name = local_model_name(provider)
    config = EngineConfig(model=str(provider.model_path or name), name=name, threads=provider.threads)
    return replace(
        config,
        context=provider.context or config.context,
        slots=provider.slots or config.slots,
        embeddings=config.embeddings if provider.embeddings is None else provider.embeddings,
    )
