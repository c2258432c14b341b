"""The settings: read from a file, the environment and the command line, and checked in full before anything starts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from adapters import located_yaml
from adapters.located_yaml import Document, Problem
from adapters.registry import load_spec
from gateway.__about__ import COMMAND
from gateway.config.environment import CONFIG_VARIABLE
from gateway.config.interpolate import interpolate
from gateway.config.loading import NO_FILE, Loading
from gateway.config.model_settings import ModelSettings, TargetSettings
from gateway.config.problems import ConfigError
from gateway.config.provider_settings import FILE_KEYS, ProviderSettings
from gateway.config.schema import AuthSettings, ServerSettings, Settings, StorageSettings, TelemetrySettings
from gateway.config.zero import tree_from_environment

__all__ = [
    "AuthSettings",
    "ConfigError",
    "ModelSettings",
    "Problem",
    "ProviderSettings",
    "ServerSettings",
    "Settings",
    "StorageSettings",
    "TargetSettings",
    "TelemetrySettings",
    "load_settings",
    "settings_from_environment",
]

_MAX_FILE_BYTES = 4 * 1024 * 1024


def load_settings(
    path: Path | None, *, environ: Mapping[str, str], flags: Mapping[str, object] | None = None
) -> Settings:
    """The settings of *path*, else of the file `GATEWAY_CONFIG` names, else those the environment alone gives.

    *flags* maps dotted paths (``server.port``) to values; None means the flag was not given. The order is flags,
    environment, file, defaults. Raises `ConfigError` with everything that is wrong, and never part of a secret.
    """
    if path is None and environ.get(CONFIG_VARIABLE):
        path = Path(environ[CONFIG_VARIABLE])
    if path is None:
        return settings_from_environment(environ, flags)
    document = _read(path)
    if document.value is not None and not isinstance(document.value, dict):
        raise ConfigError([document.problem((), "a mapping (key: value) is expected")])
    tree, unresolved = interpolate(document, environ, path.parent)
    _anchor(tree or {}, path.parent)
    return Loading(document, tree or {}, unresolved).finish(environ, flags or {})


def settings_from_environment(environ: Mapping[str, str], flags: Mapping[str, object] | None = None) -> Settings:
    """Settings without a file: every provider whose key is in *environ*, and the local engine."""
    tree, notes = tree_from_environment(environ)
    loading = Loading(Document(NO_FILE, tree), tree, {})
    loading.notes += notes
    for name in tree["providers"]:
        loading.origins["providers", name, "api_key"] = load_spec(name).transport.auth.env or ""
    return loading.finish(environ, flags or {})


def _read(path: Path) -> Document:
    try:
        if path.stat().st_size > _MAX_FILE_BYTES:
            raise ConfigError([Problem(str(path), 0, 0, "", "larger than 4 MiB; this is no configuration")])
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}"
        if isinstance(error, FileNotFoundError):
            message += f". Correct --config or GATEWAY_CONFIG, or write one: {COMMAND} init -o {path}"
        raise ConfigError([Problem(str(path), 0, 0, "", message)]) from None
    except UnicodeDecodeError:
        raise ConfigError([Problem(str(path), 0, 0, "", "no UTF-8 text")]) from None
    try:
        return located_yaml.parse(text, str(path))
    except located_yaml.YamlError as error:
        raise ConfigError(error.problems) from None


def _anchor(tree: dict[str, Any], folder: Path) -> None:
    """Let relative paths of providers count from *folder*, where the file is, and not from where one started."""
    providers = tree.get("providers")
    for provider in providers.values() if isinstance(providers, dict) else ():
        if not isinstance(provider, dict):
            continue
        adapters = provider.get("lora")
        for place in (provider, *(adapters if isinstance(adapters, list) else ())):
            for key in (*FILE_KEYS, "path") if isinstance(place, dict) else ():
                if isinstance(place.get(key), str) and place[key]:
                    place[key] = str(folder / Path(place[key]).expanduser())
