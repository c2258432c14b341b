"""The settings: read from a file, the environment and the command line, and checked in full before anything starts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from adapters import located_yaml
from adapters.located_yaml import Document, Problem
from adapters.registry import load_spec
from adapters.validation import problems_of
from gateway.config.crosscheck import check
from gateway.config.disabled import Kept, take_out_disabled
from gateway.config.environment import CONFIG_VARIABLE, from_environment
from gateway.config.interpolate import interpolate
from gateway.config.problems import ConfigError
from gateway.config.schema import (
    FILE_KEYS,
    NOT_IN_FILE,
    AuthSettings,
    ModelSettings,
    ProviderSettings,
    ServerSettings,
    Settings,
    StorageSettings,
    TargetSettings,
    TelemetrySettings,
)
from gateway.config.unbuilt import take_out_unbuilt
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
    return _Loading(document, tree or {}, unresolved).finish(environ, flags or {})


def settings_from_environment(environ: Mapping[str, str], flags: Mapping[str, object] | None = None) -> Settings:
    """Settings without a file: every provider whose key is in *environ*, and the local engine."""
    tree, notes = tree_from_environment(environ)
    loading = _Loading(Document("environment", tree), tree, {})
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
        raise ConfigError([Problem(str(path), 0, 0, "", f"cannot be read: {error.strerror or error}")]) from None
    except UnicodeDecodeError:
        raise ConfigError([Problem(str(path), 0, 0, "", "no UTF-8 text")]) from None
    try:
        return located_yaml.parse(text, str(path))
    except located_yaml.YamlError as error:
        raise ConfigError(error.problems) from None


class _Loading:
    """One run from a tree of plain values to settings, gathering what is wrong on the way."""

    def __init__(self, document: Document, tree: dict[str, Any], unresolved: Mapping[located_yaml.Path, str]) -> None:
        self.notes: list[str] = []
        self._document = document
        self._tree = tree
        self.origins: dict[located_yaml.Path, str] = {}
        self._kept: Kept = {}
        self._unresolved = unresolved
        self._removed: set[located_yaml.Path] = set()
        self._problems = [document.problem(path, message) for path, message in unresolved.items()]

    def finish(self, environ: Mapping[str, str], flags: Mapping[str, object]) -> Settings:
        """Lay environment and flags over the file, check everything, and raise or return."""
        tree, origins, problems = from_environment(environ)
        self._problems += problems
        self.origins |= origins
        _lay_over(self._tree, tree)
        for dotted, value in flags.items():
            if value is not None:
                path: located_yaml.Path = tuple(dotted.split("."))
                self.origins[path] = f"--{dotted.rpartition('.')[2].replace('_', '-')}"
                _lay_over(self._tree, _nested(path, value))
        providers, models = _names(self._tree, "providers"), _names(self._tree, "models")
        self._add(take_out_unbuilt(self._tree))
        self._add(take_out_disabled(self._tree, self.notes, self._kept))
        settings = self._validate()
        if settings is not None:
            self._add(check(settings, providers, models))
        if self._problems or settings is None:
            raise ConfigError(self._problems)
        return settings

    def _validate(self) -> Settings | None:
        """The settings, if need be without what is wrong, so that the other checks still see the rest."""
        for name in NOT_IN_FILE:
            if name in self._tree:
                self._add([((name,), True, f"'{name}' is not a known key here.")])
                del self._tree[name]
        source = "" if self._document.file == "environment" else self._document.file
        first = True
        while True:
            try:
                return Settings(**{**self._tree, "notes": tuple(self.notes), "source": source})
            except ValidationError as error:
                findings = problems_of(error, Settings)
            if first:
                self._add(findings)
            first = False
            # From the end, so that an entry that leaves a list does not move those still to be removed.
            for path, of_key, _ in sorted(findings, key=lambda finding: str(finding[0]), reverse=True):
                if not path:
                    return None
                self._take_out(path, of_key)

    def _take_out(self, path: located_yaml.Path, of_key: bool) -> None:
        """Remove what stands at *path*; unless only the key was wrong, nothing more is said about that place."""
        if not of_key:
            self._removed.add(self._original(path))
        parent: Any = self._tree
        for part in path[:-1]:
            try:
                parent = parent[part]
            except (KeyError, IndexError, TypeError):
                return  # went with something around it
        if isinstance(parent, list) and isinstance(path[-1], int) and path[-1] < len(parent):
            self._kept.setdefault(path[:-1], list(range(len(parent)))).pop(path[-1])
            del parent[path[-1]]
        elif isinstance(parent, dict):
            parent.pop(path[-1], None)

    def _add(self, findings: Iterable[tuple[located_yaml.Path, bool, str]]) -> None:
        for path, of_key, message in findings:
            original = self._original(path)
            if not self._hidden(original):
                self._problems.append(self._place(original, of_key, message))

    def _hidden(self, path: located_yaml.Path) -> bool:
        """Whether a finding at *path* would only be a consequence of what is known to be wrong."""
        inside = any(path[: len(place)] == place for place in self._unresolved)
        return inside or any(_related(path, place) for place in self._removed)

    def _original(self, path: located_yaml.Path) -> located_yaml.Path:
        """*path* as it was before entries were taken out of lists."""
        original = list(path)
        for depth, part in enumerate(path):
            kept = self._kept.get(path[:depth])
            if kept is not None and isinstance(part, int) and part < len(kept):
                original[depth] = kept[part]
        return tuple(original)

    def _place(self, path: located_yaml.Path, of_key: bool, message: str) -> Problem:
        for length in range(len(path), 0, -1):
            if origin := self.origins.get(path[:length]):
                return Problem(origin, 0, 0, located_yaml.dotted(path), message)
        problem = self._document.problem(path, message, of_key=of_key)
        return problem if self._document.values else Problem(self._document.file, 0, 0, problem.path, message)


def _related(path: located_yaml.Path, other: located_yaml.Path) -> bool:
    """Whether one of the two contains the other."""
    shorter = min(len(path), len(other))
    return path[:shorter] == other[:shorter]


def _anchor(tree: dict[str, Any], folder: Path) -> None:
    """Let relative paths of providers count from *folder*, where the file is, and not from where one started."""
    providers = tree.get("providers")
    for provider in providers.values() if isinstance(providers, dict) else ():
        for key in FILE_KEYS if isinstance(provider, dict) else ():
            if isinstance(provider.get(key), str) and provider[key]:
                provider[key] = str(folder / Path(provider[key]).expanduser())


def _lay_over(base: dict[str, Any], over: Mapping[str, Any]) -> None:
    """Merge *over* into *base*. Environment variables have no case, so a key that differs in case alone is the same."""
    folded = {key.lower(): key for key in base}
    for key, value in over.items():
        here = key if key in base else folded.get(key, key)
        old = base.get(here)
        if isinstance(old, dict) and isinstance(value, Mapping):
            _lay_over(old, value)
        else:
            base[here] = value


def _names(tree: Mapping[str, Any], section: str) -> list[str]:
    found = tree.get(section)
    return [str(name) for name in found] if isinstance(found, dict) else []


def _nested(path: located_yaml.Path, value: object) -> dict[str, Any]:
    tree: Any = value
    for part in reversed(path):
        tree = {part: tree}
    return dict(tree)
