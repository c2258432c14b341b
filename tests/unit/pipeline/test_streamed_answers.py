"""Streams through the real gateway: byte for byte what came, or an honest end."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from gateway.pipeline import relay
from tests.fakes.gateway import CHAT, CLIENTS, PROVIDER_KEY, SERVERS, chat_body, config, request, running_gateway
from tests.fakes.openai_answers import (
    DONE,
    ROLE,
    STOP,
    completion,
    delta,
    event,
    good_stream,
    payloads,
    refusal,
    stream,
    text_of,
    usage_chunk,
    words,
)
from tests.fakes.raw_client import Answer
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


# Silence


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
