"""How a bridge is, told beside its socket to every process of the gateway."""

from __future__ import annotations

import contextlib
import json
from enum import StrEnum
from pathlib import Path


class BridgeState(StrEnum):
    """What becomes of a request that comes now."""

    IDLE = "idle"  # nobody has asked yet, or nobody since it last ended: the next request starts it
    STARTING = "starting"
    READY = "ready"
    RESTARTING = "restarting"  # it failed a moment ago; waiting for it is worth while
    FAILED = "failed"  # it will be tried again, but until then requests are refused
    STOPPED = "stopped"

    @property
    def answers(self) -> bool:
        """Whether a request is answered, if after a while."""
        return self not in (BridgeState.FAILED, BridgeState.STOPPED)


def publish(socket_path: str, state: BridgeState) -> None:
    """Tell whoever knows the socket; nobody ever sees half of it."""
    path = _file(socket_path)
    draft = path.with_suffix(".new")
    # A folder that somebody has tidied away costs the sight of the state, not the bridge.
    with contextlib.suppress(FileNotFoundError):
        draft.write_text(json.dumps(state.value))
        draft.replace(path)


def state_at(socket_path: str) -> BridgeState:
    """The state of the bridge that listens there; stopped when its owner has gone."""
    try:
        return BridgeState(json.loads(_file(socket_path).read_bytes()))
    except FileNotFoundError:
        return BridgeState.STOPPED


def _file(socket_path: str) -> Path:
    return Path(socket_path).with_suffix(".state")
