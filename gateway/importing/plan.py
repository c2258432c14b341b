"""The configuration that an import is making: plain data in our own words, ready to be written down."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Tree = dict[str, Any]


@dataclass(slots=True)
class Plan:
    """Our configuration, section by section."""

    providers: dict[str, Tree] = field(default_factory=dict)
    models: dict[str, Tree] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    sections: dict[str, Tree] = field(default_factory=dict)
    """``auth``, ``storage`` and the rest."""
    expose_provider_models: bool = False

    def provider(self, wanted: str, settings: Tree) -> str:
        """The name of a provider with exactly *settings*, which is made if there is none; *wanted* or nearly so."""
        name, number = wanted, 1
        while name in self.providers:
            if self.providers[name] == settings:
                return name
            number += 1
            name = f"{wanted}-{number}"
        self.providers[name] = settings
        return name
