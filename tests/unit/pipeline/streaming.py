"""What tests of streams share: an upstream that plays a script, and how its stream is read and booked."""

from __future__ import annotations

from typing import Any

from tests.fakes.gateway import config, running_gateway
from tests.fakes.openai_answers import (
    ROLE,
    STOP,
    good_stream,
    payloads,
    words,
)
from tests.fakes.raw_client import Answer
from tests.fakes.scripted_server import (
    Script,
    ScriptedServer,
)

HELLO_EVENTS = (ROLE, *words("Hello", " there", "."), STOP)
FALLBACK = good_stream("From", " the", " second.")


async def ask(script: Script, *headers: str, top: dict[str, Any] | None = None, **settings: Any) -> Answer:
    """One streamed request with the only target playing *script*; a single try."""
    settings = {"retries": {"attempts": 1}, **settings}
    async with ScriptedServer(script) as server, running_gateway({**config(server, **settings), **(top or {})}) as it:
        return await it.chat(*headers, stream=True)


async def row_of(script: Script, **body: Any) -> tuple[Answer, dict[str, Any]]:
    async with ScriptedServer(script) as server, running_gateway(config(server)) as gateway:
        got = await gateway.chat(stream=True, **body)
        row = await gateway.row()
        assert gateway.services.ledger.open_holds == 0
    return got, row


def error_of(got: Answer) -> dict[str, Any]:
    """The error event a stream ends with; there is one, it is the last, and no ``[DONE]`` is there."""
    events = payloads(got.body)
    assert b"[DONE]" not in got.body
    assert got.complete
    assert [one for one in events if "error" in one] == events[-1:]
    error: dict[str, Any] = events[-1]["error"]
    return error
