"""What LiteLLM's words mean, as `litellm_words.yaml` says: data, so that a provider's name is in no code."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from adapters import located_yaml

_FILE = Path(__file__).with_name("litellm_words.yaml")


@dataclass(frozen=True, slots=True)
class Prefix:
    """A provider we reach ourselves, by its name at LiteLLM."""

    type: str
    at_address: str = ""
    suffix: str = ""
    model_prefix: str = ""
    unless: str = ""

    def type_at(self, address: str) -> str:
        """Our type for it, with or without an address of the operator's."""
        return self.at_address or self.type if address else self.type

    def model(self, name: str) -> str:
        """What the provider itself calls the model."""
        return name if not self.model_prefix or name.startswith(self.unless) else self.model_prefix + name


@dataclass(frozen=True, slots=True)
class Words:
    """The whole table."""

    prefixes: Mapping[str, Prefix]
    bridged: frozenset[str]
    in_process: frozenset[str]
    bare: Mapping[str, tuple[str, ...]]
    variables: Mapping[str, tuple[str, ...]]
    instead: Mapping[str, str]
    placeholders: frozenset[str]
    options: tuple[str, ...]
    request_defaults: frozenset[str]
    modes: frozenset[str]
    strategies: Mapping[str, str]
    reasons: Mapping[str, str]

    def split(self, model: str) -> tuple[str, str]:
        """The provider of a ``litellm_params.model``, empty where it is unknown, and what it calls the model."""
        prefix, slash, rest = model.partition("/")
        if slash and (prefix in self.prefixes or prefix in self.bridged or prefix in self.in_process):
            return prefix, rest
        for provider, beginnings in self.bare.items():
            if not slash and model.startswith(beginnings):
                return provider, model
        return "", model

    def is_option(self, name: str) -> bool:
        """Whether a member of ``litellm_params`` says how to reach the provider."""
        return any(name == word or (word.endswith("_") and name.startswith(word)) for word in self.options)

    def variables_of(self, provider: str, given: Collection[str]) -> list[str]:
        """The variables LiteLLM would read the credentials from, but for what is *given* as a parameter."""
        names = self.variables.get(provider) or (provider.upper().replace("-", "_") + "_API_KEY",)
        return [name for name in names if self.instead.get(name) not in given]


@cache
def words() -> Words:
    """The table, read at its first use."""
    raw: dict[str, Any] = located_yaml.parse(_FILE.read_text(encoding="utf-8"), _FILE.name).value
    return Words(
        prefixes={name: Prefix(**entry) for name, entry in raw["prefixes"].items()},
        bridged=frozenset(raw["bridged"].split()),
        in_process=frozenset(raw["in_process"]),
        bare={name: tuple(beginnings) for name, beginnings in raw["bare"].items()},
        variables={name: tuple(found) for name, found in raw["variables"].items()},
        instead=raw["instead"],
        placeholders=frozenset(raw["placeholders"]),
        options=tuple(raw["options"]),
        request_defaults=frozenset(raw["request_defaults"].split()),
        modes=frozenset(raw["modes"]),
        strategies=raw["strategies"],
        reasons=raw["reasons"],
    )
