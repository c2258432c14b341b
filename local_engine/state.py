"""What a caller needs of an engine, whichever process owns it."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from local_engine.probe import Address


class EngineState(StrEnum):
    STARTING = "starting"
    READY = "ready"
    RESTARTING = "restarting"  # it failed a moment ago; waiting for it is worth while
    FAILED = "failed"  # it will be tried again, but requests should not wait for that
    STOPPING = "stopping"
    STOPPED = "stopped"


DOWN = frozenset({EngineState.FAILED, EngineState.STOPPING, EngineState.STOPPED})
"""States in which waiting is no use."""


class Engine(Protocol):
    """A model that is, or will be, served at an address."""

    @property
    def name(self) -> str: ...

    @property
    def state(self) -> EngineState: ...

    @property
    def last_error(self) -> str:
        """Why it last failed; empty when it never did."""

    @property
    def address(self) -> Address: ...

    @property
    def slots(self) -> int:
        """Requests it works on at the same time."""

    @property
    def supports_tools(self) -> bool | None:
        """Whether the model's chat template has tools; None until the engine was ready for the first time."""

    async def wait_ready(self, timeout_seconds: float) -> None:
        """Return when requests can be sent; `EngineDownError` when they cannot for now."""


def explain(engine: Engine) -> str:
    """One sentence for the operator about an engine that is not ready; it may name files of this machine."""
    reason = f": {engine.last_error}" if engine.last_error else ""
    return f"{outline(engine)}{reason}"


def outline(engine: Engine) -> str:
    """As `explain`, without the reason, for clients."""
    return f"the local engine {engine.name!r} is not ready ({engine.state.value})"
