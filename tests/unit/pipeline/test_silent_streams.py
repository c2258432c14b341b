"""Streams that say nothing for a while: the client hears comments, and everything is still possible."""

from __future__ import annotations

import pytest

from tests.fakes.gateway import SERVERS, config, running_gateway
from tests.fakes.openai_answers import (
    DONE,
    ROLE,
    STOP,
    stream,
    text_of,
    words,
)
from tests.fakes.scripted_server import (
    LAST_CHUNK,
    Hang,
    Script,
    ScriptedServer,
    Sleep,
    chunk,
    chunked_head,
)
from tests.unit.pipeline.streaming import FALLBACK, HELLO_EVENTS, error_of


@pytest.mark.parametrize("server", SERVERS)
async def test_silence_is_filled_with_comments(server: str) -> None:
    script: Script = [Sleep(0.4), *stream(*HELLO_EVENTS, DONE)]
    settings = {"server": {"stream_keepalive": "100ms"}}
    async with (
        ScriptedServer(script) as upstream,
        running_gateway({**config(upstream), **settings}, server=server) as gateway,
    ):
        got = await gateway.chat(stream=True)
        assert not gateway.request_watches()
    comments = got.body.count(b": keep-alive\n\n")
    assert 2 <= comments <= 4
    assert got.body == b": keep-alive\n\n" * comments + b"".join((*HELLO_EVENTS, DONE))
    assert "x-gateway-target" not in got.headers  # nobody had answered when they went out
    assert got.headers["x-gateway-model"] == "m"


async def test_after_comments_a_fallback_is_still_possible() -> None:
    settings = {"server": {"stream_keepalive": "100ms"}}
    async with (
        ScriptedServer([Hang()]) as one,
        ScriptedServer(FALLBACK) as two,
        running_gateway({**config(one, two, timeouts={"first_event": "250ms"}), **settings}) as gateway,
    ):
        got = await gateway.chat(stream=True)
    assert got.body.startswith(b": keep-alive\n\n")
    assert text_of(got.body) == "From the second."


async def test_after_comments_a_failure_is_an_error_event() -> None:
    settings = {"server": {"stream_keepalive": "100ms"}}
    async with (
        ScriptedServer([Hang()]) as one,
        running_gateway({**config(one, timeouts={"first_event": "250ms"}), **settings}) as gateway,
    ):
        got = await gateway.chat(stream=True)
        row = await gateway.row()
    assert got.status == 200
    assert got.body.startswith(b": keep-alive\n\n")
    assert error_of(got)["code"] == "upstream_timeout"
    assert (row["status"], row["error_code"]) == (200, "upstream_timeout")


async def test_comments_come_in_the_middle_of_a_stream_too() -> None:
    script: Script = [chunked_head(), chunk(ROLE + words("Hi")[0]), Sleep(0.3), chunk(STOP + DONE), LAST_CHUNK]
    settings = {"server": {"stream_keepalive": "100ms"}}
    async with ScriptedServer(script) as one, running_gateway({**config(one), **settings}) as gateway:
        got = await gateway.chat(stream=True)
    assert b": keep-alive\n\n" in got.body
    assert got.body.replace(b": keep-alive\n\n", b"") == b"".join((ROLE, *words("Hi"), STOP, DONE))
