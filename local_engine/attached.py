"""An engine that another process of this machine owns, known by its socket."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from local_engine.errors import EngineDownError
from local_engine.probe import Address
from local_engine.state import DOWN, Engine, EngineState, explain

_LOOK_AGAIN_SECONDS = 0.1


class AttachedEngine:
    """Implements `Engine` for the workers of a gateway whose parent runs the engines."""

    def __init__(self, name: str, socket_path: str, slots: int) -> None:
        self.name = name
        self.slots = slots
        self.address = Address(socket_path=socket_path)
        self._state_file = state_file(socket_path)

    @property
    def state(self) -> EngineState:
        return self._look()[0]

    @property
    def last_error(self) -> str:
        return self._look()[1]

    @property
    def supports_tools(self) -> bool | None:
        return self._look()[2]

    async def wait_ready(self, timeout_seconds: float) -> None:
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + timeout_seconds
        while (state := self.state) is not EngineState.READY:
            if state in DOWN or loop.time() > give_up_at:
                raise EngineDownError(explain(self))
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)

    def _look(self) -> tuple[EngineState, str, bool | None]:
        try:
            state, error, tools = json.loads(self._state_file.read_bytes())
        except FileNotFoundError:
            return EngineState.STOPPED, "", None
        return EngineState(state), error, tools


def state_file(socket_path: str) -> Path:
    """Where the owner of an engine says how it is, beside its socket."""
    return Path(socket_path).with_suffix(".state")


def publish(engine: Engine) -> None:
    """Tell the attached how *engine* is; they never see half of it."""
    if engine.address.socket_path is not None:
        path = state_file(engine.address.socket_path)
        draft = path.with_suffix(".new")
        draft.write_text(json.dumps([engine.state.value, engine.last_error, engine.supports_tools]))
        draft.replace(path)
