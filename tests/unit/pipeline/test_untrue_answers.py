"""What is no answer although it says 200, and what of an upstream no client is told."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from tests.fakes.gateway import PROVIDER_KEY, config, running_gateway
from tests.fakes.openai_answers import (
    DONE,
    ROLE,
    STOP,
    completion,
    delta,
    event,
    good_stream,
    refusal,
    stream,
    whole,
    words,
)
from tests.fakes.scripted_server import Flood, Script, ScriptedServer, answer
from tests.unit.pipeline.plain_requests import ask


@pytest.mark.parametrize(
    ("script", "code"),
    [
        pytest.param([answer(b"<html>sign in</html>", content_type="text/html")], "upstream_error", id="html"),
        pytest.param([answer(b"<html>sign in</html>")], "upstream_malformed", id="html-as-json"),
        pytest.param([answer(b"")], "upstream_malformed", id="no-body"),
        pytest.param([answer(b"[1]")], "upstream_malformed", id="a-list"),
        pytest.param([answer(b'{"choices": 5}')], "upstream_malformed", id="odd-choices"),
        pytest.param([answer(b"[" * 60_000)], "upstream_malformed", id="nesting"),
        pytest.param([answer(b'{"id": "x", "choices": []}')], "upstream_error", id="empty-choices"),
        pytest.param([answer(b'{"id": "x"}')], "upstream_error", id="no-choices"),
        pytest.param([answer(b'{"choices": null, "error": null}')], "upstream_error", id="null-choices"),
    ],
)
async def test_a_200_without_an_answer_in_it_is_a_502(script: Script, code: str) -> None:
    got, _ = await ask(script)
    assert (got.status, got.error["code"], got.error["provider"]) == (502, code, "p1")
    assert b"sign in" not in got.body


async def test_an_error_page_is_never_echoed() -> None:
    page = b"<html><body>internal host 10.0.0.7 exploded</body></html>"
    got, _ = await ask([answer(page, status=502, content_type="text/html")])
    assert got.status == 502
    assert got.error["upstream_status"] == 502
    assert b"10.0.0.7" not in got.body


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        ({"message": "slow down", "code": "rate_limit_exceeded"}, 429, "rate_limit_exceeded"),
        ({"message": "bad temperature", "type": "invalid_request_error", "param": "temperature"}, 400, "invalid_value"),
        ({"message": "too long", "code": "context_length_exceeded"}, 400, "context_length_exceeded"),
        ({"message": "who are you", "code": 401}, 502, "upstream_auth"),
        ({"message": "broken", "code": 500}, 502, "upstream_error"),
        ("a mere text", 502, "upstream_error"),
        (True, 502, "upstream_error"),
        ([], 502, "upstream_error"),
        ({"unknown": "shape"}, 502, "upstream_error"),
        ({"message": None, "code": "²"}, 502, "upstream_error"),
    ],
)
async def test_an_error_inside_a_200_counts_as_its_status(error: Any, status: int, code: str) -> None:
    got, _ = await ask([answer(json.dumps({"error": error}).encode())])
    assert (got.status, got.error["code"]) == (status, code)


@pytest.mark.parametrize("error", [None, "", {}, False])
async def test_an_empty_error_beside_an_answer_is_no_error(error: Any) -> None:
    got, _ = await ask([whole(error=error)])
    assert got.status == 200


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_is_never_followed(status: int) -> None:
    got, server = await ask([answer(b"", status=status, headers="location: http://127.0.0.1:1/\r\n")])
    assert got.status == 502
    assert "redirect" in got.error["message"]
    assert len(server.requests) == 1


async def test_a_stream_where_none_was_asked_for_becomes_a_whole_answer() -> None:
    got, _ = await ask(good_stream("Hello", " there", "."))
    assert got.headers["content-type"] == "application/json"
    assert got.json["object"] == "chat.completion"
    assert got.json["choices"] == [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hello there."}}
    ]
    assert got.json["usage"]["prompt_tokens"] == 9


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(stream(ROLE, *words("Hel", "lo")), id="cut"),
        pytest.param(stream(ROLE, *words("Hel", "lo"), DONE), id="no-finish-reason"),
        pytest.param(stream(event([]), DONE), id="a-list"),
        pytest.param(stream(event({"choices": [5]}), DONE), id="no-choice"),
        pytest.param(stream(event({"choices": [{"delta": [1]}]}), DONE), id="odd-delta"),
        pytest.param(stream(delta(tool_calls=[{"index": 10**12}]), STOP, DONE), id="tool-index-from-space"),
        pytest.param(stream(delta(tool_calls=[{"index": -3}]), STOP, DONE), id="negative-tool-index"),
        pytest.param(stream(delta(tool_calls=[5]), STOP, DONE), id="odd-tool-call"),
        pytest.param(stream(DONE), id="nothing"),
    ],
)
async def test_a_stream_that_is_no_whole_answer_is_a_502(script: Script) -> None:
    got, _ = await ask(script)
    assert got.status == 502
    assert got.error["type"] == "server_error"


async def test_an_answer_over_the_limit_is_a_502_and_its_connection_is_dropped() -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n"
    async with (
        ScriptedServer([head, Flood(b" " * 65536, 64 * 2**20)]) as server,
        running_gateway(config(server, retries={"attempts": 1})) as gateway,
    ):
        got = await gateway.chat()
        await server.wait_until(lambda it: it.open_connections == 0)
    assert got.status == 502
    assert server.sent_bytes < 40 * 2**20


async def test_a_compressed_answer_is_read_although_none_was_asked_for() -> None:
    body = json.dumps(completion()).encode()
    got, _ = await ask([answer(gzip.compress(body), headers="content-encoding: gzip\r\n")])
    assert (got.status, got.body) == (200, body)
    assert "content-encoding" not in got.headers


async def test_a_compressed_bomb_is_a_502() -> None:
    bomb = gzip.compress(bytes(30 * 2**20))
    got, _ = await ask([answer(bomb, headers="content-encoding: gzip\r\n")])
    assert got.status == 502


async def test_a_key_that_the_provider_echoes_is_blotted_out() -> None:
    got, _ = await ask([refusal(400, f"bad call with {PROVIDER_KEY}", param=PROVIDER_KEY, code=PROVIDER_KEY)])
    assert got.status == 400
    assert PROVIDER_KEY.encode() not in got.body
    assert got.error["message"] == "bad call with [key]"


@pytest.mark.parametrize("status", [401, 403])
async def test_a_provider_that_refuses_our_key_is_not_quoted(status: int) -> None:
    got, _ = await ask([refusal(status, "account acme-corp-17 is suspended")])
    assert (got.status, got.error["code"]) == (502, "upstream_auth")
    assert b"acme" not in got.body
