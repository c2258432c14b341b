"""What a bridge's process is told when it starts, and the exit codes it answers with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import IntEnum
from typing import Any


@dataclass(frozen=True, slots=True)
class Orders:
    """One line of JSON on standard input. Secrets are in it, which is why it is never an argument of the process."""

    parent_pid: int
    memory_bytes: int
    base_url: str = ""
    """Where the provider's API is; empty: where the library says."""
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Passed to each call of the library, such as ``api_version`` or ``aws_region_name``."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Sent to the provider with each request."""
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables the library reads. The process has next to none besides."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Orders:
        values: dict[str, Any] = json.loads(text)
        return cls(**values)


class ChildExit(IntEnum):
    """Exit codes of the process; with any other it died of something it could not tell."""

    OK = 0
    LIBRARY_UNUSABLE = 70
