"""Settings from the environment: `GATEWAY_SERVER__PORT=9000` and the short names for what is set most often."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic_settings import EnvSettingsSource
from pydantic_settings.exceptions import SettingsError

from adapters.located_yaml import Path, Problem
from adapters.validation import did_you_mean
from gateway.__about__ import ENV_PREFIX
from gateway.config import unbuilt
from gateway.config.schema import NOT_IN_FILE, Settings

SHORT_NAMES: Mapping[str, Path] = {
    f"{ENV_PREFIX}ADMIN_KEY": ("auth", "admin_key"),
    f"{ENV_PREFIX}DATABASE_URL": ("storage", "database_url"),
    f"{ENV_PREFIX}REDIS_URL": ("storage", "redis_url"),
    f"{ENV_PREFIX}LOG_LEVEL": ("telemetry", "log_level"),
}
"""Variables that need no `__`. The long name wins when both are set."""

CONFIG_VARIABLE = f"{ENV_PREFIX}CONFIG"
"""Names the configuration file."""


class _Source(EnvSettingsSource):
    """pydantic-settings' own reader, over a mapping that the caller hands in."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = {key.lower(): value for key, value in environ.items()}
        super().__init__(Settings)

    def _load_env_vars(self) -> Mapping[str, str | None]:
        return self._environ


def from_environment(environ: Mapping[str, str]) -> tuple[dict[str, Any], dict[Path, str], list[Problem]]:
    """The settings in *environ* as a tree, the variable behind each path, and what is wrong with the names."""
    ours = {name: value for name, value in environ.items() if name.startswith(ENV_PREFIX)}
    problems: list[Problem] = []
    origins: dict[Path, str] = {}
    accepted: dict[str, str] = {}
    later: dict[str, str] = {}
    sections = [name for name in Settings.model_fields if name not in NOT_IN_FILE]
    for short, path in SHORT_NAMES.items():
        if ours.get(short):
            long = ENV_PREFIX + "__".join(map(str, path)).upper()
            accepted[long] = ours[short]
            origins[path] = short
    for name, value in ours.items():
        path = tuple(name.removeprefix(ENV_PREFIX).lower().split("__"))
        if path[0] in sections:
            accepted[name] = value
            origins[path] = name
        elif path[0] in unbuilt.SECTIONS:
            later[path[0]] = value
            origins[path[:1]] = name
        elif len(path) > 1:
            near = did_you_mean(str(path[0]), sections)
            problems.append(Problem(name, 0, 0, "", f"'{path[0]}' is not a section of the configuration.{near}"))
    try:
        tree: dict[str, Any] = _Source(accepted)()
    except SettingsError:
        # The library's message may quote the value; which variable it was is found by trying them one at a time.
        tree, origins = {}, {}
        problems += [
            Problem(name, 0, 0, "", "a mapping or a list is expected here, written as JSON")
            for name, value in accepted.items()
            if not _readable(name, value)
        ]
    return tree | later, origins, problems


def _readable(name: str, value: str) -> bool:
    try:
        _Source({name: value})()
    except SettingsError:
        return False
    return True
