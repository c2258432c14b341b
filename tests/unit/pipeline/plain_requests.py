"""What tests of whole answers share: one request to an upstream that plays a script."""

from __future__ import annotations

from typing import Any

from tests.fakes.gateway import config, running_gateway
from tests.fakes.raw_client import Answer
from tests.fakes.scripted_server import Script, ScriptedServer


async def ask(script: Script, *headers: str, **settings: Any) -> tuple[Answer, ScriptedServer]:
    """One plain request to a gateway whose only target plays *script*; a single try, so that failures show."""
    settings = {"retries": {"attempts": 1}, **settings}
    async with ScriptedServer(script) as server, running_gateway(config(server, **settings)) as gateway:
        return await gateway.chat(*headers), server
