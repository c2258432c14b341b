"""A simulated provider on a loopback port, in the test's own event loop."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from adapters.registry import load_spec
from adapters.simulator.asgi import SimulatorApp
from adapters.simulator.engine import Simulator
from adapters.simulator.options import Options
from adapters.simulator.refusal import RefusedError
from adapters.spec import Kind
from gateway.config.provider_settings import BRIDGE_TYPE
from tests.fakes.loopback_server import serving


@dataclass(slots=True)
class Simulated:
    """The running simulator, how to reach it, and what it saw."""

    simulator: Simulator
    port: int
    requests: list[Any] = field(default_factory=list)
    """The decoded bodies, in the order they came."""
    refusals: list[RefusedError] = field(default_factory=list)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}{self.simulator.base_path}"

    @property
    def key(self) -> str:
        """A key that is accepted."""
        return self.simulator.key or "any-key"

    @property
    def model(self) -> str:
        """A model it serves."""
        return self.simulator.models.names()[0]

    @property
    def settings(self) -> dict[str, Any]:
        """What a gateway's ``providers`` says to reach it, by an address even where the gateway would start a child."""
        spec = self.simulator.spec
        child = spec.kind is Kind.IN_PROCESS or spec.id == BRIDGE_TYPE
        kind = spec.inherits if child else spec.id
        return {"type": kind, "base_url": self.base_url, "api_key": self.key}


@contextlib.asynccontextmanager
async def simulated(
    provider: str, overrides: Mapping[str, Any] | None = None, **options: Any
) -> AsyncIterator[Simulated]:
    """Play *provider* with changed facts (*overrides*) and `Options`."""
    requests: list[Any] = []
    refusals: list[RefusedError] = []
    simulator = Simulator(
        load_spec(provider).with_overrides(overrides or {}),
        Options(**options),
        on_request=lambda _, body: requests.append(body),
        on_refusal=refusals.append,
    )
    async with serving(SimulatorApp(simulator)) as loopback:
        yield Simulated(simulator, loopback.port, requests, refusals)
