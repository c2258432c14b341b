"""A gateway whose bridges run the stand-in for the litellm library."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from tests.fakes.gateway import RunningGateway, running_gateway

STAND_IN = Path(__file__).parent / "litellm_stand_in"
KEY_OF_PROVIDER = "sk-acme-0123456789-secret"


@contextlib.contextmanager
def stand_in_on_path() -> Iterator[None]:
    """Have bridges that are started within find the stand-in in place of the library."""
    sys.path.insert(0, str(STAND_IN))
    try:
        yield
    finally:
        sys.path.remove(str(STAND_IN))


def bridge(log: Path, **settings: Any) -> dict[str, Any]:
    """The settings of a provider behind a bridge; what its library does stands in *log* afterwards."""
    env = {"STAND_IN_LOG": str(log), "ACME_KEY": "k-acme-variable", **settings.pop("env", {})}
    return {"type": "litellm_bridge", "api_key": KEY_OF_PROVIDER, "env": env, **settings}


def events(log: Path) -> list[dict[str, Any]]:
    """What the stand-in was called with, and what became of it."""
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


@contextlib.asynccontextmanager
async def bridged_gateway(provider: dict[str, Any], *models: str) -> AsyncIterator[RunningGateway]:
    """A gateway with *provider* as ``acme`` and *models*, each by its own name, with one try each."""
    settings = {
        "providers": {"acme": provider},
        "models": {
            name: {"targets": [{"provider": "acme", "model": f"acme/{name}"}], "retries": {"attempts": 1}}
            for name in models or ("m",)
        },
    }
    with stand_in_on_path():
        async with running_gateway(settings) as gateway:
            yield gateway
