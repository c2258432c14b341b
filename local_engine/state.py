"""What a caller needs of an engine, whichever process owns it."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from local_engine.probe import Address


class EngineState(StrEnum):
    STARTING = "starting"
    READY = "ready"
    UNLOADED = "unloaded"  # a request loads it
    LOADING = "loading"  # it was asked for after having been unloaded
    UNLOADING = "unloading"  # it takes no new requests; those it has are answered first
    RESTARTING = "restarting"  # it failed a moment ago; waiting for it is worth while
    FAILED = "failed"  # it will be tried again, but requests should not wait for that
    STOPPING = "stopping"
    STOPPED = "stopped"


DOWN = frozenset({EngineState.FAILED, EngineState.STOPPING, EngineState.STOPPED})
"""States in which waiting is no use."""


WELL = frozenset({EngineState.READY, EngineState.UNLOADED, EngineState.LOADING, EngineState.UNLOADING})
"""States in which nothing is wrong: requests are answered, now or when the model is loaded."""

LOADED = frozenset({EngineState.READY, EngineState.UNLOADING})
"""States in which the model is in memory and answers."""


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
        """Whether the model's chat template has tools; None while nobody knows yet."""

    def wake(self) -> None:
        """Have the model loaded, without waiting for it."""

    async def claim(self, timeout_seconds: float) -> None:
        """Return when a request can be sent; the model stays loaded until `release`.

        A model that is not loaded is loaded first. `EngineDownError` when it cannot be for now, `NoRoomError` when it
        may not be in time, because too many others are.
        """

    def release(self) -> None:
        """The request of one `claim` is over."""


def explain(engine: Engine) -> str:
    """One sentence for the operator about an engine that is not ready; it may name files of this machine."""
    reason = f": {engine.last_error}" if engine.last_error else ""
    return f"{outline(engine)}{reason}"


def outline(engine: Engine) -> str:
    """As `explain`, without the reason, for clients."""
    return f"the local engine {engine.name!r} is not ready ({engine.state.value})"
