"""What the server needs of the application that it serves."""

from __future__ import annotations

from typing import Any, Protocol

from gateway.data_plane.exchange import Plane
from gateway.deadlines import Deadlines


class ServedServices(Protocol):
    """What the server needs of an application's services."""

    draining: bool

    @property
    def deadlines(self) -> Deadlines: ...


class ServedApplication(Protocol):
    """What the server needs of the application of one worker."""

    @property
    def plane(self) -> Plane: ...

    @property
    def services(self) -> ServedServices: ...

    @property
    def asgi(self) -> Any:
        """The ASGI application for everything the data plane does not answer."""

    def reload_soon(self, trigger: str) -> None:
        """Read the configuration again, without waiting for it."""

    def end_remaining(self) -> None:
        """End every request under way: a stream with an error event, others with a 503."""

    async def aclose(self) -> None: ...
