"""Every secret that a configuration holds, so that none can reach a log."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

from gateway.bridge import owned
from gateway.config.schema import Settings


def secrets_of(settings: Settings) -> Iterator[str]:
    """All secrets of *settings* in the clear."""
    for provider in settings.providers.values():
        yield from provider.keys
        yield from (value.get_secret_value() for value in provider.headers.values())
        yield from owned.secrets_of(provider)
    for address in (settings.storage.database_url, settings.server.upstream_proxy):
        password = urlsplit(address.get_secret_value()).password if address is not None else None
        if password:
            yield unquote(password)
    if settings.auth.admin_key is not None:
        yield settings.auth.admin_key.get_secret_value()
