"""The local engines of a configuration: owned by a single process, or by the parent of several workers."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from dataclasses import asdict
from typing import Final

from gateway.__about__ import ENV_PREFIX
from gateway.config.provider_settings import ProviderSettings
from gateway.config.schema import Settings
from gateway.late import load
from gateway.local_models import context_of, local_model_name, stamps_of_files
from local_engine.attached import AttachedEngine
from local_engine.engine import LocalEngine
from local_engine.errors import LocalEngineError
from local_engine.memory import MemoryCheck
from local_engine.options import Adapter, EngineConfig
from local_engine.probe import Address
from local_engine.registry import DEFAULT_MODEL, default_store
from local_engine.room import Room

_log = logging.getLogger(__name__)

SHARED_VARIABLE: Final = ENV_PREFIX + "SHARED_ENGINES"
"""Tells a worker where the engines are that its parent owns; never set by people."""


def owned_engines(settings: Settings, room: Room) -> dict[str, LocalEngine]:
    """An engine for each local provider, not started yet, by the provider's name; *room* is where they are loaded."""
    return {
        name: LocalEngine(engine_config(provider), room=room)
        for name, provider in settings.providers.items()
        if provider.local
    }


def share(engines: Mapping[str, LocalEngine]) -> str:
    """What `attached_engines` needs to reach *engines*, which must have been started."""
    told = {provider: [engine.name, asdict(engine.address), engine.slots] for provider, engine in engines.items()}
    return json.dumps(told)


def attached_engines(shared: str) -> dict[str, AttachedEngine]:
    """The engines another process shares, as seen from here."""
    return {
        provider: AttachedEngine(name, Address(**address), slots)
        for provider, (name, address, slots) in json.loads(shared).items()
    }


async def fetch_models(settings: Settings, before: Settings) -> None:
    """Bring the models that *settings* want and *before* did not; one that cannot be had is said, and stops nothing."""
    wanted = sorted(_models(settings) - _models(before))
    if not wanted:
        return
    # It brings a client for downloads, which most gateways do without.
    pull = (await load("local_engine.pull")).pull
    for name in wanted:
        _log.info("fetching the local model %s, unless it is here", name)
        try:
            await asyncio.to_thread(pull, name, default_store())
        except LocalEngineError as error:
            _log.warning("going on without the local model %s: %s", name, error)


def _models(settings: Settings) -> set[str]:
    return {
        provider.model or DEFAULT_MODEL
        for provider in settings.providers.values()
        if provider.local and not provider.model_path and not provider.command
    }


def engine_config(provider: ProviderSettings) -> EngineConfig:
    """What the engine of a local *provider* is told."""
    name = local_model_name(provider)
    given = {
        "slots": provider.slots,
        "flash_attention": provider.flash_attention,
        "kv_type": provider.kv_type,
        "cache_ram_mib": None if provider.prompt_cache is None else provider.prompt_cache >> 20,
        "memory_check": None if provider.memory_check is None else MemoryCheck(provider.memory_check),
    }
    return EngineConfig(
        model=str(provider.model_path or name),
        name=name,
        context=context_of(provider),
        threads=provider.threads,
        batch=provider.batch,
        batch_threads=provider.batch_threads,
        chat_template=provider.chat_template,
        chat=provider.chat,
        embeddings=provider.embeddings,
        rerank=provider.rerank,
        pooling=provider.pooling,
        adapters=tuple(Adapter(one.path, one.scale, one.name) for one in provider.lora),
        command=provider.command,
        idle_unload_seconds=provider.idle_unload,
        stamps=stamps_of_files(provider),
        **{key: value for key, value in given.items() if value is not None},  # type: ignore[arg-type]  # each of its own type
    )
