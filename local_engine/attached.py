"""An engine that another process of this machine owns, known by the files beside its socket."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from local_engine.errors import EngineDownError, NoRoomError
from local_engine.lease import Lease, ring
from local_engine.probe import Address
from local_engine.state import DOWN, Engine, EngineState, explain

_LOOK_AGAIN_SECONDS = 0.05
_LOOKS_UNTIL_RUNG_AGAIN = 20


class AttachedEngine:
    """Implements `Engine` for the workers of a gateway whose parent runs the engines."""

    def __init__(self, name: str, address: Address, slots: int) -> None:
        """*address* must have a ``control``."""
        self.name = name
        self.slots = slots
        self.address = address
        self._state_file = state_file(address.control)
        self._lease: Lease | None = None
        self._claims = 0

    @property
    def state(self) -> EngineState:
        return self._look()[0]

    @property
    def last_error(self) -> str:
        return self._look()[1]

    @property
    def supports_tools(self) -> bool | None:
        return self._look()[2]

    def wake(self) -> None:
        ring(bell_path(self.address.control))

    async def claim(self, timeout_seconds: float) -> None:
        try:
            async with asyncio.timeout(timeout_seconds):
                while not await self._claimed():  # noqa: ASYNC110 - no event reaches another process
                    await asyncio.sleep(_LOOK_AGAIN_SECONDS)
        except TimeoutError as error:
            raise gave_up(self) from error

    def release(self) -> None:
        self._claims -= 1
        if not self._claims and self._lease is not None:
            self._lease.give_back()

    async def _claimed(self) -> bool:
        """Whether the engine is ready and held; False when it has to be tried again."""
        if self._is_leaving or not self._hold():
            return False
        looks = 0
        try:
            while self.state is not EngineState.READY:
                if self.state in DOWN:
                    raise EngineDownError(explain(self))
                if self._is_leaving:
                    self.release()  # or it would wait for us
                    return False
                if looks % _LOOKS_UNTIL_RUNG_AGAIN == 0:
                    self.wake()
                looks += 1
                await asyncio.sleep(_LOOK_AGAIN_SECONDS)
        except BaseException:
            self.release()
            raise
        return True

    @property
    def _is_leaving(self) -> bool:
        return self.state is EngineState.UNLOADING

    def _hold(self) -> bool:
        if self._lease is None:
            try:
                self._lease = Lease(lease_path(self.address.control))
            except FileNotFoundError:  # its owner has stopped it, and removed everything
                raise EngineDownError(explain(self)) from None
        if not self._claims and not self._lease.share():
            return False
        self._claims += 1
        return True

    def _look(self) -> tuple[EngineState, str, bool | None]:
        try:
            state, error, tools = json.loads(self._state_file.read_bytes())
        except FileNotFoundError:
            return EngineState.STOPPED, "", None
        return EngineState(state), error, tools


def gave_up(engine: Engine) -> EngineDownError | NoRoomError:
    """What there is to say when a request has waited too long for *engine*."""
    if engine.state in (EngineState.UNLOADED, EngineState.UNLOADING):
        return NoRoomError(
            f"the local engine {engine.name!r} waits for other models to be unloaded; they are answering"
        )
    return EngineDownError(explain(engine))


def state_file(control: str) -> Path:
    """Where the owner of an engine says how it is."""
    return Path(control + ".state")


def lease_path(control: str) -> Path:
    """The file of its `Lease`."""
    return Path(control + ".lease")


def bell_path(control: str) -> Path:
    """Where its owner listens for those who want it loaded."""
    return Path(control + ".bell")


def publish(engine: Engine) -> None:
    """Tell the attached how *engine* is; they never see half of it."""
    if engine.address.control:
        path = state_file(engine.address.control)
        draft = path.with_suffix(".new")
        draft.write_text(json.dumps([engine.state.value, engine.last_error, engine.supports_tools]))
        draft.replace(path)
