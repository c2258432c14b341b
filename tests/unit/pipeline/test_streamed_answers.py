"""Streams through the real gateway: byte for byte what came, and booked by what was said."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.pipeline import relay
from tests.fakes.gateway import CLIENTS, SERVERS, config, running_gateway
from tests.fakes.openai_answers import (
    DONE,
    ROLE,
    STOP,
    good_stream,
    payloads,
    stream,
    text_of,
    usage_chunk,
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
from tests.unit.pipeline.streaming import HELLO_EVENTS, ask, row_of

# What goes through


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("server", SERVERS)
async def test_unchanged_events_are_the_bytes_that_came(server: str, client: str) -> None:
    spaced = (
        b'data: {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "y",  '
        b'"choices":[{"index":0,"delta":{"content":"caf\\u00e9 \xe2\x80\xa8"},"finish_reason":null}], "x": 1.50}\n\n'
    )
    events = (ROLE, spaced, *words("Hello"), STOP)
    async with (
        ScriptedServer(stream(*events, DONE)) as upstream,
        running_gateway(config(upstream), server=server, upstream_client=client) as gateway,
    ):
        got = await gateway.chat(stream=True)
        again = await gateway.chat(stream=True)
    assert got.status == 200
    assert got.body == again.body == b"".join(events) + DONE
    assert upstream.connections == 1


async def test_the_headers_of_a_stream_say_who_answers() -> None:
    got = await ask(good_stream())
    assert got.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert got.headers["cache-control"] == "no-cache"
    assert got.headers["x-accel-buffering"] == "no"
    assert got.headers["x-gateway-target"] == "p1/up1"
    assert got.headers["x-gateway-attempts"] == "1"
    assert got.headers["x-request-id"] == got.headers["request-id"]
    assert "server-timing" in got.headers


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("size", [1, 3, 7, 64])
async def test_events_may_be_split_anywhere_and_end_lines_as_they_like(line_end: str, size: int) -> None:
    body = b"".join((*HELLO_EVENTS, DONE)).replace(b"\n", line_end.encode())
    pieces = [chunk(body[start : start + size]) for start in range(0, len(body), size)]
    got = await ask([chunked_head(), *[b"".join(pieces[at : at + 40]) for at in range(0, len(pieces), 40)], LAST_CHUNK])
    assert text_of(got.body.replace(b"\r\n", b"\n").replace(b"\r", b"\n")) == "Hello there."
    assert payloads(got.body.replace(b"\r\n", b"\n").replace(b"\r", b"\n"))[-1] == "[DONE]"


async def test_a_content_type_has_no_case() -> None:
    chunks = map(chunk, (*HELLO_EVENTS, DONE))
    got = await ask([chunked_head("Text/Event-Stream; charset=UTF-8"), *chunks, LAST_CHUNK])
    assert got.body == b"".join((*HELLO_EVENTS, DONE))


async def test_comments_of_the_upstream_are_not_passed_on() -> None:
    got = await ask(stream(b": OPENROUTER PROCESSING\n\n", ROLE, *words("Hi"), b": ping\n\n", STOP, DONE))
    assert b": " not in got.body.replace(b'": ', b"").replace(b"data: ", b"")
    assert text_of(got.body) == "Hi"


async def test_the_model_of_every_event_can_be_the_alias() -> None:
    got = await ask(good_stream(), top={"response_model": "alias"})
    assert {one["model"] for one in payloads(got.body)[:-1]} == {"m"}
    assert text_of(got.body) == "Hello there."


async def test_the_alias_stands_in_the_usage_chunk_too() -> None:
    async with (
        ScriptedServer(good_stream()) as server,
        running_gateway({**config(server), "response_model": "alias"}) as gateway,
    ):
        got = await gateway.chat(stream=True, stream_options={"include_usage": True})
    assert {one["model"] for one in payloads(got.body)[:-1]} == {"m"}


# Usage


async def test_usage_is_always_asked_for_and_shown_only_to_those_who_asked() -> None:
    async with ScriptedServer(good_stream()) as server, running_gateway(config(server)) as gateway:
        silent = await gateway.chat(stream=True)
        told = await gateway.chat(stream=True, stream_options={"include_usage": True})
        off = await gateway.chat(stream=True, stream_options={"include_usage": False, "include_obfuscation": False})
        rows = await gateway.rows()
    assert all(json.loads(sent.body)["stream_options"]["include_usage"] is True for sent in server.requests)
    assert json.loads(server.requests[2].body)["stream_options"]["include_obfuscation"] is False
    assert b"usage" not in silent.body
    assert b"usage" not in off.body
    *_, usage, done = payloads(told.body)
    assert (usage["choices"], usage["usage"]["prompt_tokens"], done) == ([], 9, "[DONE]")
    assert told.body.count(b"usage") == 1
    assert [(row["prompt_tokens"], row["completion_tokens"], row["cost_nusd"]) for row in rows] == [(9, 3, 15_000)] * 3


@pytest.mark.parametrize("wanted", [False, True])
async def test_usage_on_a_chunk_with_choices_is_taken_off_it(wanted: bool) -> None:
    last = usage_chunk(choices=[{"index": 0, "delta": {}, "finish_reason": "stop"}])
    got, row = await row_of(stream(ROLE, *words("Hi"), last, DONE), stream_options={"include_usage": wanted})
    with_choices = [one for one in payloads(got.body)[:-1] if one["choices"]]
    assert all("usage" not in one for one in with_choices)
    assert with_choices[-1]["choices"][0]["finish_reason"] == "stop"
    extra = [one for one in payloads(got.body)[:-1] if not one["choices"]]
    assert [one["usage"]["completion_tokens"] for one in extra] == ([3] if wanted else [])
    assert (row["prompt_tokens"], row["estimated"]) == (9, False)


async def test_the_last_usage_of_a_stream_that_counts_along_is_what_is_booked() -> None:
    counting = [
        usage_chunk({"prompt_tokens": 5, "completion_tokens": n}, [{"index": 0, "delta": {"content": "w"}}])
        for n in (1, 2)
    ]
    final = usage_chunk(
        {"prompt_tokens": 5, "completion_tokens": 3}, [{"index": 0, "delta": {}, "finish_reason": "stop"}]
    )
    got, row = await row_of(stream(*counting, final, DONE), stream_options={"include_usage": True})
    assert got.body.count(b"usage") == 1
    assert (row["prompt_tokens"], row["completion_tokens"]) == (5, 3)


@pytest.mark.parametrize(
    "usage", [None, {"prompt_tokens": -5}, {"prompt_tokens": "x"}, [], "y", {"prompt_tokens": 10**25}]
)
async def test_a_stream_without_sound_usage_is_booked_by_what_was_seen(usage: Any) -> None:
    odd = usage_chunk(usage, [{"index": 0, "delta": {"content": "Hello"}}])
    got, row = await row_of(stream(ROLE, odd, STOP, usage_chunk(usage), DONE), stream_options={"include_usage": True})
    assert text_of(got.body) == "Hello"
    assert payloads(got.body)[-1] == "[DONE]"
    assert row["estimated"]
    assert 0 < row["completion_tokens"] < 20


# When it is booked


async def test_a_stream_is_booked_before_its_end_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    """The upstream keeps the body open after ``[DONE]``; the client has its answer, and the books know of it."""
    monkeypatch.setattr(relay, "_LINGER_SECONDS", 0.2)
    script: Script = [*stream(*HELLO_EVENTS, usage_chunk(), DONE, end=False), Hang()]
    async with ScriptedServer(script) as server, running_gateway(config(server)) as gateway:
        got = await gateway.chat(stream=True)
        booked, under_way = gateway.services.ledger.open_holds == 0, len(gateway.services.in_flight)
        await server.wait_until(lambda it: it.open_connections == 0)
        row = await gateway.row()
    assert got.complete
    assert (booked, under_way) == (True, 1)
    assert (row["prompt_tokens"], row["error_code"]) == (9, None)


async def test_time_to_the_first_content_is_not_the_time_to_the_role() -> None:
    script: Script = [
        chunked_head(),
        chunk(ROLE),
        Sleep(0.2),
        *(chunk(one) for one in (*words("Hi"), STOP, DONE)),
        LAST_CHUNK,
    ]
    _, row = await row_of(script)
    assert row["stream"]
    assert row["ttft_ms"] >= 200
