"""A gateway that takes part: how it is started and asked, and the process it runs as."""

from __future__ import annotations

import http.client
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from benchmarks.bodies import Body, body
from benchmarks.loads import Address
from benchmarks.processes import Running

_ASK_EVERY: Final = 0.005
_SETTLED: Final = 0.05
"""Of a core: what a gateway may take that is not asked anything."""


class Via(StrEnum):
    """A way through a gateway."""

    PLAIN = "plain"
    TLS = "tls"
    """The upstream is reached over TLS."""
    REASONING = "reasoning"
    """The upstream streams reasoning under a name that has to be changed."""
    BARE_CALLS = "bare-calls"
    """The upstream streams tool calls that have to be completed."""


@dataclass(frozen=True, slots=True)
class Route:
    """Where a way begins: the path, and the name of the model there."""

    model: str
    path: str = "/v1/chat/completions"


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that has to be known to start a gateway and to ask it."""

    name: str
    command: Sequence[str]
    routes: Mapping[Via, Route]
    port: int = 0
    port_file: Path | None = None
    """Where the gateway writes the port it took, if it takes one by itself."""
    key: str | None = None
    headers: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    version: str = ""
    start_seconds: float = 90.0
    only: frozenset[str] | None = None
    """Names of the measurements it takes part in; None for all it can."""

    def address(self, via: Via, port: int) -> Address:
        authorization = () if self.key is None else (f"Authorization: Bearer {self.key}",)
        return Address(port, self.routes[via].path, (*authorization, *self.headers))


class DidNotStartError(Exception):
    """A gateway gave no good answer in time; the text holds the end of its log."""


class Contestant:
    """A running gateway."""

    def __init__(self, plan: Plan, folder: Path, cpus: Collection[int]) -> None:
        """Start it, and wait for its first good answer."""
        self.plan = plan
        self.name = plan.name
        self._log = folder / f"{plan.name.replace(' ', '-')}.log"
        begun = time.monotonic()
        self.process = Running(plan.command, cpus=cpus, folder=folder, env=plan.env, log=self._log)
        try:
            self.port = plan.port or self._port_it_took(begun)
            self._await_answer(begun)
        except BaseException:  # an interrupted measurement must not leave it running either
            self.process.stop()
            raise
        self.start_seconds = time.monotonic() - begun
        self.start_cpu_seconds = self.process.cpu_seconds()

    def has(self, via: Via) -> bool:
        return via in self.plan.routes

    def address(self, via: Via) -> Address:
        return self.plan.address(via, self.port)

    def body(self, kind: Body, via: Via, gap: int | None = None) -> bytes:
        return body(kind, self.plan.routes[via].model, gap=gap)

    def settle(self, patience: float = 15.0) -> None:
        """Wait until it has done what was left of earlier requests."""
        until = time.monotonic() + patience
        while time.monotonic() < until:
            before = self.process.cpu_seconds()
            time.sleep(0.1)  # the stretch over which its CPU time is looked at
            if self.process.cpu_seconds() - before < 0.1 * _SETTLED:
                return

    def _port_it_took(self, begun: float) -> int:
        assert self.plan.port_file is not None
        while not (self.plan.port_file.exists() and (text := self.plan.port_file.read_text().strip())):
            self._give_up_after(begun)
        return int(text)

    def _await_answer(self, begun: float) -> None:
        while not _answers(self.address(Via.PLAIN), self.body(Body.SMALL, Via.PLAIN)):
            self._give_up_after(begun)

    def _give_up_after(self, begun: float) -> None:
        """Wait a little, or raise where that has no sense any more."""
        if self.process.ended or time.monotonic() - begun > self.plan.start_seconds:
            how = "ended" if self.process.ended else f"gave no good answer in {self.plan.start_seconds:.0f} s"
            raise DidNotStartError(f"{self.name} {how}: {self._log.read_text(errors='replace')[-1200:].strip()}")
        time.sleep(_ASK_EVERY)  # it tells nobody when it is ready: it has to be asked


def _answers(address: Address, content: bytes) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=5)
    pairs = [header.partition(":") for header in address.headers]
    headers = {name: value.strip() for name, _, value in pairs}
    try:
        connection.request("POST", address.path, content, {"Content-Type": "application/json", **headers})
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
