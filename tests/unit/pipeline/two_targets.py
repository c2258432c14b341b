"""Requests to a model of two targets, or of one, each a server that follows a script."""

from __future__ import annotations

from typing import Any

from tests.fakes.gateway import config, running_gateway
from tests.fakes.openai_answers import whole
from tests.fakes.scripted_server import Script, ScriptedServer

GOOD: Script = [whole()]
CUT_SHORT = whole()[:-40]


def failures(row: dict[str, Any]) -> list[tuple[str, str | None]]:
    """The target and the failure of each attempt."""
    return [(attempt["target"], attempt["failure"]) for attempt in row["attempts"]]


async def both(first: Any, second: Any = GOOD, *headers: str, **settings: Any) -> tuple[Any, Any, int, int]:
    """The answer, the row, and how many requests each of two targets saw."""
    async with (
        ScriptedServer(first) as one,
        ScriptedServer(second) as two,
        running_gateway(config(one, two, **settings)) as gateway,
    ):
        got = await gateway.chat(*headers)
        row = await gateway.row()
        assert gateway.services.ledger.open_holds == 0
    return got, row, len(one.requests), len(two.requests)


async def alone(script: Any, *headers: str, **settings: Any) -> tuple[Any, Any, int]:
    """The answer, the row, and how many requests the only target saw."""
    async with ScriptedServer(script) as one, running_gateway(config(one, **settings)) as gateway:
        got = await gateway.chat(*headers)
        row = await gateway.row()
    return got, row, len(one.requests)
