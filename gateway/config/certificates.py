"""Tells whether the files that a provider's settings name have been renewed: certificates, models, adapters."""

from __future__ import annotations

from typing import TypeAlias

from gateway.config.provider_settings import ProviderSettings
from gateway.config.schema import Settings
from gateway.local_models import stamps_of_files

Stamps: TypeAlias = tuple[tuple[str, int, int], ...]
"""Path, time of the last change and size of each file."""


def stamps_of(provider: ProviderSettings) -> Stamps:
    """What another version of one of the files would change. A file that is not there is an `OSError`."""
    found: list[tuple[str, int, int]] = []
    for path in (provider.ca_file, provider.client_cert, provider.client_key):
        if path is not None:
            state = path.stat()
            found.append((str(path), state.st_mtime_ns, state.st_size))
        else:
            found.append(("", 0, 0))
    return tuple(found)


def all_stamps(settings: Settings) -> dict[str, Stamps]:
    """Those of every provider, by its name; with the files of the models that run here."""
    return {
        name: stamps_of(provider) + (stamps_of_files(provider) if provider.local else ())
        for name, provider in settings.providers.items()
    }
