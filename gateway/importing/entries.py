"""An entry of `model_list` as it stands in the file, and what is made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.importing.located import Path
from gateway.importing.plan import Tree


@dataclass(slots=True)
class Deployment:
    """A target, and what its entry asks for that stands at the model here."""

    provider: str
    target: Tree
    path: Path
    order: int = 0
    weight: int | None = None
    seconds: float | None = None
    first_event: str | None = None
    retries: int | None = None
    drop: bool = False
    limits: Tree = field(default_factory=dict)
    concurrency: int | None = None


@dataclass(slots=True)
class Entry:
    """An entry as it stands in the file, and which of its members have been dealt with."""

    name: str
    path: Path
    params: Mapping[str, Any]
    info: Mapping[str, Any]
    seen: set[str] = field(default_factory=set)

    def take(self, name: str) -> Any:
        """A member of ``litellm_params``, which is dealt with now."""
        self.seen.add(name)
        return self.params.get(name)

    def at(self, name: str) -> Path:
        return (*self.path, "litellm_params", name)
