"""Checks that take more than one key to see: names that point somewhere, files that exist, keys that go together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path as FilePath
from urllib.parse import urlsplit

from pydantic import SecretStr, ValidationError

from adapters.located_yaml import Path
from adapters.overrides import OVERRIDABLE
from adapters.registry import UnknownProviderTypeError, load_spec
from adapters.spec import ProviderSpec
from adapters.validation import did_you_mean, one_of, problems_of
from gateway.config import fine_tunes, local_engine
from gateway.config.provider_settings import (
    BRIDGE_ONLY,
    LOCAL_ONLY,
    NOT_OF_BRIDGES,
    REMOTE_ONLY,
    TLS_KEYS,
    ProviderSettings,
)
from gateway.config.schema import PATTERN_END, Settings
from gateway.storage.errors import StorageError
from gateway.storage.urls import parse_database_url

Finding = tuple[Path, bool, str]
"""A path, whether the key itself is meant, and a message."""

EXAMPLE_SECRETS = frozenset({"change-me", "changeme", "your-api-key", "your-key-here", "gsk_...", "sk-...", "example"})
"""Values that examples use for secrets; nobody may start with one."""

_MIN_ADMIN_KEY = 16

# RFC 9110, 7.6.1, and what frames a body: a second one of these would make two requests of one.
_OWN_HEADERS = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade", "expect"}
    | {"accept-encoding", "proxy-connection"}
)


def check(settings: Settings, providers: Collection[str], models: Collection[str]) -> Iterator[Finding]:
    """Everything that is wrong with settings that are well-formed one by one.

    *providers* and *models* are the names in the file; an entry with a fault of its own is missing from *settings*.
    """
    yield from _auth(settings)
    yield from _proxy(settings)
    try:
        parse_database_url(settings.storage.database_url.get_secret_value())
    except StorageError as error:
        yield ("storage", "database_url"), False, str(error)
    for name, provider in settings.providers.items():
        yield from _provider(("providers", name), provider)
    yield from _models(settings, providers)
    for alias, model in settings.aliases.items():
        if model.endswith(PATTERN_END) and model in models:
            message = f"'{model}' stands for many models; the alias has to name one of them"
            yield ("aliases", alias), False, message
        elif model not in models and not fine_tunes.is_name_of(model, settings.models):
            message = f"the alias points to '{model}', which is not a model.{did_you_mean(model, models)}"
            yield ("aliases", alias), False, message
        if alias in models:
            yield ("aliases", alias), True, f"'{alias}' is a model already; the alias would never be used"
    if not models and not settings.expose_provider_models:
        yield (), True, "there are no models to serve; name some under 'models', or set expose_provider_models: true"


def _auth(settings: Settings) -> Iterator[Finding]:
    key = settings.auth.admin_key
    if settings.auth.mode == "open" and not settings.server.loopback:
        message = f"'open' would let anybody in who can reach {settings.server.host}; use 'keys', or host 127.0.0.1"
        yield ("auth", "mode"), False, message
    if key is None or not key.get_secret_value():
        return
    if _is_example(key):
        yield ("auth", "admin_key"), False, "the value stands in an example; make a secret of your own"
    elif len(key.get_secret_value()) < _MIN_ADMIN_KEY:
        yield ("auth", "admin_key"), False, f"the key is shorter than {_MIN_ADMIN_KEY} characters"


def _proxy(settings: Settings) -> Iterator[Finding]:
    proxy = settings.server.upstream_proxy
    if proxy is None:
        return
    path: Path = ("server", "upstream_proxy")
    if settings.server.upstream_client != "httpx":
        yield path, True, "only 'upstream_client: httpx' uses a proxy"
    try:
        parts = urlsplit(proxy.get_secret_value())
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable:  # not quoted: it may hold a password
        yield path, False, "a proxy is written http://HOST:PORT, or https://USER:PASSWORD@HOST:PORT"


def _provider(path: Path, provider: ProviderSettings) -> Iterator[Finding]:
    try:
        spec = load_spec(provider.type)
    except UnknownProviderTypeError as error:
        yield (*path, "type"), False, str(error)
        return
    given = provider.model_fields_set
    for key in REMOTE_ONLY if provider.local else LOCAL_ONLY:
        if key in given:
            meaning = "does not apply to the local engine" if provider.local else "applies to 'type: local' only"
            yield (*path, key), True, f"'{key}' {meaning}"
    for key in NOT_OF_BRIDGES if provider.bridge else BRIDGE_ONLY:
        if key in given:
            meaning = "does not apply to a bridge" if provider.bridge else "applies to 'type: litellm_bridge' only"
            yield (*path, key), True, f"'{key}' {meaning}"
    if provider.local:
        yield from local_engine.check_provider(path, provider)
    else:
        told = fine_tunes.spec_of(provider, spec) or spec
        yield from _address(path, provider, told)
        yield from _keys(path, provider, told)
    for key in (*TLS_KEYS, "model_path"):
        place = getattr(provider, key)
        if place is not None and not FilePath(place).is_file():
            yield (*path, key), False, f"there is no file {place}"
    if (provider.client_cert is None) != (provider.client_key is None):
        present = "client_cert" if provider.client_cert else "client_key"
        yield (*path, present), True, "'client_cert' and 'client_key' go together"
    yield from overrides((*path, "overrides"), provider.overrides, spec)


def _address(path: Path, provider: ProviderSettings, spec: ProviderSpec) -> Iterator[Finding]:
    if provider.unix_socket is not None:
        if provider.base_url is not None:
            yield (*path, "unix_socket"), True, "either 'base_url' or 'unix_socket', not both"
        yield from _unencrypted(path, provider, "a socket of this machine")
        return
    if provider.base_url is None:
        if spec.transport.base_url is None and not provider.bridge:
            message = f"'base_url' is missing; a provider of type {provider.type} has no address of its own"
            yield path, True, message
        return
    fault = _bad_url(provider.base_url)
    if fault is not None:
        yield (*path, "base_url"), False, fault
    elif urlsplit(provider.base_url).scheme == "http":
        yield from _unencrypted(path, provider, "an address with http")


def _unencrypted(path: Path, provider: ProviderSettings, reached_by: str) -> Iterator[Finding]:
    for key in TLS_KEYS:
        if getattr(provider, key) is not None:
            yield (*path, key), True, f"'{key}' is for https, and {reached_by} has no TLS"


def _bad_url(url: str) -> str | None:
    if "@" in url:
        # Before anything else, since every other message quotes the URL.
        return "a URL must not hold a user or a password; use 'api_key' or 'headers'"
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return f"'{url}' is not a URL"
    if parts.scheme not in ("http", "https") or not host:
        return f"'{url}' is not an http or https URL"
    if not (url.isascii() and url.isprintable()) or " " in url:
        return f"'{url}' holds a space, or another character that has to be written as %20 or the like"
    if parts.query or parts.fragment:
        return f"'{url}' must not have a query or a fragment"
    return None


def _keys(path: Path, provider: ProviderSettings, spec: ProviderSpec) -> Iterator[Finding]:
    if provider.api_key is not None and provider.api_keys:
        yield (*path, "api_keys"), True, "either 'api_key' or 'api_keys', not both"
    auth = spec.transport.auth
    if not provider.keys and not auth.optional:
        hint = f"; write api_key: ${{{auth.env}}}" if auth.env else ""
        yield path, True, f"'api_key' is missing: {spec.name} answers nobody without one{hint}"
    for key in ("api_key", "api_keys"):
        value = getattr(provider, key)
        for index, secret in enumerate(value if isinstance(value, tuple) else (value,) if value else ()):
            at: Path = (*path, key, index) if key == "api_keys" else (*path, key)
            if _is_example(secret):
                yield at, False, "the value stands in an example; use a key of your own"
            elif _has_control(secret.get_secret_value()):
                message = "the key holds a line break, a space around it or another character no header can carry"
                yield at, False, message
    for name, secret in provider.headers.items():
        at = (*path, "headers", name)
        plain = name.replace("-", "").replace("_", "")
        if _has_control(secret.get_secret_value()) or not (plain.isascii() and plain.isalnum()):
            yield at, False, "not a header: control characters, or a name with other than a-z 0-9 -"
        elif name.lower() in _OWN_HEADERS:
            yield at, True, f"'{name}' is the gateway's own: it says how the connection is used and where a body ends"


def _has_control(text: str) -> bool:
    return text != text.strip() or any(ord(char) < 32 or ord(char) > 126 for char in text)


def _is_example(secret: SecretStr) -> bool:
    return secret.get_secret_value().lower() in EXAMPLE_SECRETS


def overrides(
    path: Path, changes: Mapping[str, object], spec: ProviderSpec, *, of_target: bool = False
) -> Iterator[Finding]:
    """What is wrong with *changes* as overrides of *spec*."""
    transport = changes.get("transport")
    if isinstance(transport, Mapping):
        # All targets of a provider share its address and its connections.
        if "base_url" in transport:
            yield (*path, "transport", "base_url"), True, "write 'base_url' at the provider itself"
        if of_target and "keep_alive" in transport:
            yield (*path, "transport", "keep_alive"), True, "'keep_alive' belongs to the provider's overrides"
    known = {key: value for key, value in changes.items() if key in OVERRIDABLE}
    for key in changes:
        if key not in OVERRIDABLE:
            message = f"'{key}' cannot be overridden.{did_you_mean(key, OVERRIDABLE)}{one_of(sorted(OVERRIDABLE))}"
            yield (*path, key), True, message
    try:
        spec.with_overrides(known)
    except ValidationError as error:
        for at, of_key, message in problems_of(error, ProviderSpec):
            yield (*path, *at), of_key, message


def _models(settings: Settings, providers: Collection[str]) -> Iterator[Finding]:
    for name, model in settings.models.items():
        if "*" in name:
            yield from fine_tunes.check_name(name)
        seen: Counter[tuple[str, str]] = Counter()
        for index, target in enumerate(model.targets):
            path: Path = ("models", name, "targets", index)
            provider = settings.providers.get(target.provider)
            if provider is None:
                if target.provider not in providers:
                    near = did_you_mean(target.provider, providers)
                    yield (*path, "provider"), False, f"'{target.provider}' is not a provider.{near}{one_of(providers)}"
                continue
            if target.weight is not None and model.route.strategy == "priority":
                message = "weights count for nothing under strategy 'priority'; set route: {strategy: weighted}"
                yield (*path, "weight"), True, message
            if provider.local:
                yield from local_engine.check_target(path, name, target, provider)
            if not target.model and not provider.local and not target.adapters:
                yield path, False, f"'model' is missing: what {target.provider} calls the model"
            seen[target.provider, target.model] += 1
            if seen[target.provider, target.model] == 2:
                yield (
                    path,
                    False,
                    f"{target.provider}/{target.model} is a target of '{name}' already".replace("/ ", " "),
                )
            try:
                spec = load_spec(provider.type)
            except UnknownProviderTypeError:
                continue  # reported with the provider
            yield from overrides((*path, "overrides"), target.overrides, spec, of_target=True)
            own = fine_tunes.spec_of(provider, spec)
            if own is not None and not provider.local:
                yield from fine_tunes.check_target(path, name, target, own)
