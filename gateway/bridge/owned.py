"""The bridges of a configuration: owned by a single process, or by the parent of several workers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from pydantic import SecretStr

from gateway.__about__ import ENV_PREFIX
from gateway.bridge.installed import require_library
from gateway.bridge.orders import Orders
from gateway.bridge.supervisor import Bridge
from gateway.config.provider_settings import BRIDGE_MEMORY_BYTES, ProviderSettings
from gateway.config.schema import Settings

SHARED_VARIABLE: Final = ENV_PREFIX + "SHARED_BRIDGES"
"""Tells a worker where the bridges listen that its parent owns; never set by people."""

_SECRET_WORDS: Final = ("key", "secret", "token", "password", "credential")


def owned_bridges(settings: Settings) -> dict[str, Bridge]:
    """A bridge for each provider that is one, not started yet, by the provider's name.

    Raises `BridgeMissingError` when there are any and the library is not installed.
    """
    bridged = {name: provider for name, provider in settings.providers.items() if provider.bridge}
    require_library(list(bridged))
    return {name: Bridge(name, partial(_orders, provider)) for name, provider in bridged.items()}


def share(bridges: Mapping[str, Bridge]) -> str:
    """What `shared_sockets` needs to reach *bridges*, which must have been started."""
    return json.dumps(sockets(bridges))


def shared_sockets(shared: str) -> dict[str, str]:
    """Where the bridges of another process listen, by provider."""
    found: dict[str, str] = json.loads(shared)
    return found


def sockets(bridges: Mapping[str, Bridge]) -> dict[str, str]:
    """Where *bridges*, which must have been started, listen."""
    return {name: bridge.socket_path for name, bridge in bridges.items()}


def reached_by(settings: Settings, listening: Mapping[str, str]) -> Settings:
    """*settings* with every bridge as a server behind its socket, which is all that requests need to know of it."""
    providers = {
        name: provider.model_copy(update={"unix_socket": Path(listening[name]), "base_url": None, "headers": {}})
        if name in listening
        else provider
        for name, provider in settings.providers.items()
    }
    return settings.model_copy(update={"providers": providers}) if listening else settings


def secrets_of(provider: ProviderSettings) -> Iterator[str]:
    """What must not reach a log of what only bridges are told: variables, and options named like secrets."""
    yield from (value.get_secret_value() for value in provider.env.values())
    for name, value in provider.options.items():
        if isinstance(value, SecretStr) and any(word in name.lower() for word in _SECRET_WORDS):
            yield value.get_secret_value()


def _orders(provider: ProviderSettings) -> Orders:
    return Orders(
        parent_pid=os.getpid(),
        memory_bytes=provider.memory or BRIDGE_MEMORY_BYTES,
        base_url=provider.base_url or "",
        options={name: _plain(value) for name, value in provider.options.items()},
        headers={name: value.get_secret_value() for name, value in provider.headers.items()},
        environ={name: value.get_secret_value() for name, value in provider.env.items()},
    )


def _plain(value: SecretStr | bool | float) -> str | bool | float:
    return value.get_secret_value() if isinstance(value, SecretStr) else value
