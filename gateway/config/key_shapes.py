"""Keys that do not look like their provider's: worth a remark, since they may still be right."""

from __future__ import annotations

from collections.abc import Iterator

from adapters.registry import UnknownProviderTypeError, load_spec
from gateway.config.schema import Settings


def key_remarks(settings: Settings) -> Iterator[str]:
    """A sentence for each provider with a key of another shape; an address of one's own may take any."""
    for name, provider in settings.providers.items():
        if provider.base_url is not None or provider.unix_socket is not None or not provider.keys:
            continue
        try:
            spec = load_spec(provider.type)
        except UnknownProviderTypeError:
            continue  # told with the provider
        prefix = spec.transport.auth.key_prefix
        if any(" " in key for key in provider.keys):
            yield f"{name}: the key holds a space; perhaps it was not copied well"
        if prefix and not all(key.startswith(prefix) for key in provider.keys):
            yield f"{name}: the key does not begin with '{prefix}' as keys of {spec.name} do; perhaps it is another's"
