"""Streams that fail: before the first content nobody sees it, after it there is an honest end."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.fakes.gateway import CHAT, PROVIDER_KEY, SERVERS, chat_body, config, request, running_gateway
from tests.fakes.openai_answers import (
    DONE,
    ROLE,
    STOP,
    completion,
    delta,
    event,
    payloads,
    refusal,
    stream,
    text_of,
    usage_chunk,
    words,
)
from tests.fakes.scripted_server import (
    LAST_CHUNK,
    Close,
    Flood,
    Hang,
    Reset,
    Script,
    ScriptedServer,
    Sleep,
    answer,
    chunk,
    chunked_head,
)
from tests.unit.pipeline.streaming import FALLBACK, HELLO_EVENTS, ask, error_of, row_of

# Before the first content everything can still change


@pytest.mark.parametrize("server", SERVERS)
async def test_nothing_is_sent_before_the_first_content(server: str) -> None:
    script: Script = [
        chunked_head(),
        chunk(ROLE),
        Sleep(0.15),
        *(chunk(one) for one in (*words("Hi"), STOP, DONE)),
        LAST_CHUNK,
    ]
    async with ScriptedServer(script) as upstream, running_gateway(config(upstream), server=server) as gateway:
        client = await gateway.connect()
        await client.send(request(CHAT, chat_body(stream=True)))
        await upstream.wait_until(lambda it: it.sent_bytes > len(ROLE))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.08):
                await client.reader.readexactly(1)
        got = await client.answer()
    assert got.status == 200
    assert got.chunks[0].startswith(ROLE)


BEFORE_CONTENT: list[Any] = [
    pytest.param(stream(ROLE), "reset", id="ends-after-role"),
    pytest.param([chunked_head(), chunk(ROLE), Close()], "reset", id="cut-after-role"),
    pytest.param([chunked_head(), chunk(ROLE), Reset()], "reset", id="reset-after-role"),
    pytest.param(stream(DONE), "reset", id="done-at-once"),
    pytest.param(stream(ROLE, DONE), "reset", id="role-and-done"),
    pytest.param(stream(), "reset", id="no-event"),
    pytest.param(stream(event({"error": {"message": "busy", "code": 503}})), "overloaded", id="error-event"),
    pytest.param(stream(ROLE, event({"error": "busy"})), "server_error", id="error-after-role"),
    pytest.param(stream(*[b"data: {broken\n\n"] * 3), "malformed", id="three-broken-events"),
    pytest.param(stream(*[b"data: [1]\n\n"] * 3), "malformed", id="three-odd-events"),
    pytest.param(stream(b"data: " + b"x" * (2**20 + 10)), "too_large", id="huge-event"),
    pytest.param(stream(*[ROLE + b": " + b"c" * 4096 + b"\n\n"] * 2000), "too_large", id="endless-role"),
    pytest.param([answer(b"<html>hi</html>", content_type="text/html")], "wrong_content_type", id="html"),
    pytest.param([answer(b'{"choices": []}')], "empty", id="empty-json"),
    pytest.param([answer(b'{"choices": [5]}')], "malformed", id="odd-json"),
    pytest.param([answer(b'{"error": {"message": "x", "code": 500}}')], "server_error", id="error-json"),
    pytest.param([refusal(500)], "server_error", id="500"),
]


@pytest.mark.parametrize(("script", "kind"), BEFORE_CONTENT)
async def test_a_failure_before_the_first_content_is_never_seen(script: Script, kind: str) -> None:
    async with (
        ScriptedServer(script) as one,
        ScriptedServer(FALLBACK) as two,
        running_gateway(config(one, two, retries={"attempts": 1})) as gateway,
    ):
        got = await gateway.chat(stream=True)
        row = await gateway.row()
        assert gateway.services.ledger.open_holds == 0
    assert got.status == 200
    assert got.body == b"".join((ROLE, *words("From", " the", " second."), STOP, DONE))
    assert got.headers["x-gateway-fallback-from"] == "p1/up1"
    assert got.headers["x-gateway-target"] == "p2/up2"
    assert [attempt.get("failure") for attempt in row["attempts"]] == [kind, None]


async def test_a_key_that_an_error_event_echoes_is_blotted_out() -> None:
    echo = event({"error": {"message": f"bad key {PROVIDER_KEY}", "code": PROVIDER_KEY, "param": PROVIDER_KEY}})
    before = await ask(stream(ROLE, echo))
    after = await ask(stream(ROLE, *words("Hi"), echo))
    assert before.status == 502
    assert error_of(after)["message"] == "bad key [key]"
    assert PROVIDER_KEY.encode() not in before.body + after.body


async def test_an_error_event_before_content_is_answered_with_its_status() -> None:
    got = await ask(stream(ROLE, event({"error": {"message": "too many", "type": "rate_limit_error"}})))
    assert (got.status, got.error["code"]) == (429, "rate_limit_exceeded")
    assert got.headers["content-type"] == "application/json"


# After it a failure is told, once, and nothing is made up


AFTER_CONTENT: list[Any] = [
    pytest.param([Close()], "upstream_interrupted", "interrupted", id="cut"),
    pytest.param([Reset()], "upstream_interrupted", "interrupted", id="reset"),
    pytest.param([LAST_CHUNK], "upstream_interrupted", "interrupted", id="clean-end"),
    pytest.param([chunk(DONE), LAST_CHUNK], "upstream_interrupted", "interrupted", id="done-without-finish-reason"),
    pytest.param(
        [chunk(event({"error": {"message": "gone", "code": "overloaded"}}))],
        "no_healthy_upstream",
        "overloaded",
        id="event",
    ),
    pytest.param([chunk(b"data: {no\n\n") * 3], "upstream_malformed", "malformed", id="three-broken-events"),
    pytest.param([chunk(b"data: " + b"x" * (2**20 + 10))], "upstream_error", "too_large", id="huge-event"),
    pytest.param([Hang()], "upstream_stalled", "stalled", id="stall"),
    pytest.param([chunk(b": ping\n\n"), Sleep(0.1)] * 10, "upstream_stalled", "stalled", id="comments-only"),
    pytest.param([chunk(ROLE), Sleep(0.1)] * 10, "upstream_stalled", "stalled", id="roles-only"),
]


@pytest.mark.parametrize(("rest", "code", "kind"), AFTER_CONTENT)
async def test_a_failure_after_content_is_one_error_event(rest: Script, code: str, kind: str) -> None:
    script: Script = [chunked_head(), chunk(ROLE), *(chunk(one) for one in words("Hel", "lo")), Sleep(0.02), *rest]
    async with (
        ScriptedServer(script) as one,
        ScriptedServer(FALLBACK) as two,
        running_gateway(config(one, two, timeouts={"stall": "250ms"})) as gateway,
    ):
        got = await gateway.chat(stream=True)
        await gateway.wait_for(lambda: gateway.upstream.in_use == 0, 1.0)
        row = await gateway.row()
        assert gateway.services.ledger.open_holds == 0
        assert not gateway.request_watches()
    error = error_of(got)
    assert (got.status, error["code"], error["param"], error["provider"]) == (200, code, None, "p1")
    assert error["request_id"] == got.headers["x-request-id"]
    assert text_of(got.body) == "Hello"
    assert b'"finish_reason": "' not in got.body
    assert two.requests == []
    assert (row["status"], row["error_code"]) == (200, code)
    assert row["attempts"][0]["failure"] == kind
    assert row["estimated"]
    assert row["completion_tokens"] > 0


@pytest.mark.parametrize(
    "broken", [b"data: {broken\n\n", b"data: [1]\n\n", b'data: {"choices": [null]}\n\n', b"data: 5\n\n"]
)
async def test_up_to_two_broken_events_are_skipped(broken: bytes) -> None:
    got = await ask(stream(ROLE, broken, *words("Hel"), broken, *words("lo"), STOP, DONE))
    assert got.body == b"".join((ROLE, *words("Hel", "lo"), STOP, DONE))


async def test_a_missing_done_is_added_when_the_answer_is_whole() -> None:
    got, row = await row_of(stream(*HELLO_EVENTS, usage_chunk()))
    assert got.body == b"".join((*HELLO_EVENTS, DONE))
    assert (row["status"], row["error_code"], row["attempts"][0].get("failure")) == (200, None, None)


async def test_an_event_without_its_last_line_end_still_counts() -> None:
    got = await ask([chunked_head(), chunk(b"".join(HELLO_EVENTS[:-1]) + STOP.rstrip(b"\n")), LAST_CHUNK])
    assert payloads(got.body)[-1] == "[DONE]"
    assert payloads(got.body)[-2]["choices"][0]["finish_reason"] == "stop"


async def test_a_connection_that_breaks_after_the_finish_reason_has_given_a_whole_answer() -> None:
    got, row = await row_of([chunked_head(), *(chunk(one) for one in HELLO_EVENTS), Reset()])
    assert payloads(got.body)[-1] == "[DONE]"
    assert row["error_code"] is None


async def test_a_stream_that_never_ends_is_cut_off_at_its_token_limit() -> None:
    endless: Script = [chunked_head(), Flood(chunk(delta(content="la ")), 64 * 2**20)]
    async with ScriptedServer(endless) as server, running_gateway(config(server)) as gateway:
        got = await gateway.chat(stream=True, max_tokens=20)
        await server.wait_until(lambda it: it.open_connections == 0)
    assert error_of(got)["code"] == "upstream_error"
    assert 20 <= got.body.count(b"la ") <= 40


async def test_every_choice_has_to_finish() -> None:
    one_of_two = stream(delta(content="a"), delta(content="b", index=1), STOP, end=True)
    async with ScriptedServer(one_of_two) as server, running_gateway(config(server)) as gateway:
        torn = await gateway.chat(stream=True, n=2)
    assert error_of(torn)["code"] == "upstream_interrupted"


async def test_a_whole_answer_where_a_stream_was_asked_for_becomes_one() -> None:
    got, row = await row_of([answer(json.dumps(completion()).encode())], stream_options={"include_usage": True})
    assert got.headers["content-type"].startswith("text/event-stream")
    assert text_of(got.body) == "Hello there."
    assert [one["choices"][0]["finish_reason"] for one in payloads(got.body)[:2]] == [None, "stop"]
    assert payloads(got.body)[2]["usage"]["completion_tokens"] == 3
    assert payloads(got.body)[3] == "[DONE]"
    assert (row["prompt_tokens"], row["estimated"]) == (9, False)


async def test_a_whole_answer_that_never_ends_runs_into_the_first_content_limit() -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 5000\r\n\r\n"
    dripping: Script = [head, *(step for _ in range(100) for step in (b" ", Sleep(0.05)))]
    async with (
        ScriptedServer(dripping) as one,
        ScriptedServer(FALLBACK) as two,
        running_gateway(config(one, two, timeouts={"first_event": "200ms"})) as gateway,
    ):
        got = await gateway.chat(stream=True)
        row = await gateway.row()
    assert text_of(got.body) == "From the second."
    assert row["attempts"][0]["failure"] == "first_content_timeout"
