"""The folder an engine lives in: where it listens, and by what other processes share it."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable

from local_engine.attached import bell_path, lease_path
from local_engine.lease import Bell
from local_engine.occupancy import Occupancy
from local_engine.options import EngineConfig
from local_engine.probe import Address
from local_engine.rundir import RunDirectory


class Premises:
    """Made for the time between an engine's start and its end."""

    def __init__(self, config: EngineConfig, occupancy: Occupancy, wake: Callable[[], None]) -> None:
        """Other processes take part in *occupancy*, and *wake* the model when they find it unloaded."""
        self._occupancy = occupancy
        self._directory: RunDirectory | None = None
        self._bell: Bell | None = None
        control = ""
        if sys.platform != "win32":
            self._directory = RunDirectory()
            control = str(self._directory.path / "engine")
            occupancy.share_by(lease_path(control))
            self._bell = Bell(bell_path(control), wake)
        self.address = _address(config, control)

    def close(self) -> None:
        """Remove everything."""
        self._occupancy.close()
        if self._bell is not None:
            self._bell.close()
        if self._directory is not None:
            self._directory.remove()


def _address(config: EngineConfig, control: str) -> Address:
    if config.loopback_port or any("{port}" in word for word in config.command):
        # A program of somebody else's is not told a key: any user of this machine may reach it.
        key = "" if config.command else os.urandom(16).hex()
        return Address(port=_free_port(), api_key=key, control=control)
    return Address(socket_path=control + ".sock", control=control)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
