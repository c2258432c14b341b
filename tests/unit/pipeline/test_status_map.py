"""The status map, row by row: what the client hears, how often the same target is asked, and whether another one is."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.fakes.gateway import config, running_gateway
from tests.fakes.openai_answers import ROLE, delta, event, payloads, stream, whole
from tests.fakes.scripted_server import RecordedRequest, Script, ScriptedServer, answer

pytestmark = pytest.mark.usefixtures("short_backoff")


@dataclass(frozen=True)
class Row:
    """One row: what the upstream answers, and what has to come of it."""

    name: str
    upstream: int
    says: dict[str, Any]
    client: int
    type: str
    code: str
    tries: int = 1
    reroute: bool = False
    headers: str = ""
    envelope: dict[str, Any] | str | None = field(default=None)

    def script(self) -> Script:
        body = self.envelope if self.envelope is not None else {"error": {"message": "no", **self.says}}
        raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        return [answer(raw, status=self.upstream, headers=self.headers)]


INVALID = "invalid_request_error"
SOON = "retry-after-ms: 5\r\n"
ROWS = [
    Row("validation", 400, {"code": "invalid_value"}, 400, INVALID, "invalid_value"),
    Row("validation as FastAPI words it", 422, {}, 400, INVALID, "invalid_value",
        envelope={"detail": [{"loc": ["body", "n"], "msg": "too many"}]}),
    Row("a parameter it lacks", 400, {"message": "property 'seed' is unsupported"}, 400, INVALID,
        "unsupported_parameter", reroute=True),
    Row("overflow by its code", 400, {"code": "context_length_exceeded"}, 400, INVALID, "context_length_exceeded",
        reroute=True),
    Row("overflow under a 500", 500, {"message": "maximum context length is 9"}, 400, INVALID,
        "context_length_exceeded", reroute=True),
    Row("content refused", 400, {"code": "content_filter"}, 400, INVALID, "content_filter"),
    Row("our key refused", 401, {}, 502, "server_error", "upstream_auth", reroute=True),
    Row("our key not allowed", 403, {}, 502, "server_error", "upstream_auth", reroute=True),
    Row("our account empty", 402, {}, 502, "server_error", "upstream_payment", reroute=True),
    Row("our account suspended", 412, {}, 502, "server_error", "upstream_payment", reroute=True),
    Row("out of quota under a 429", 429, {"code": "insufficient_quota"}, 502, "server_error", "upstream_payment",
        reroute=True),
    Row("model unknown there", 404, {}, 502, "server_error", "upstream_model_not_found", reroute=True),
    Row("model gone", 410, {}, 502, "server_error", "upstream_model_not_found", reroute=True),
    Row("model fails to load", 500, {"message": "model x failed to load"}, 502, "server_error",
        "upstream_model_not_loaded", reroute=True),
    Row("request timeout", 408, {}, 504, "timeout_error", "upstream_timeout", 2, reroute=True),
    Row("gateway timeout", 504, {}, 504, "timeout_error", "upstream_timeout", 2, reroute=True),
    Row("proxy timeout", 524, {}, 504, "timeout_error", "upstream_timeout", 2, reroute=True),
    Row("too large", 413, {}, 413, INVALID, "request_too_large"),
    Row("too large for a minute's tokens", 413, {"code": "rate_limit_exceeded", "type": "tokens"}, 429,
        "rate_limit_error", "rate_limit_exceeded", reroute=True),
    Row("conflict", 409, {}, 502, "server_error", "upstream_error", 2, reroute=True),
    Row("too early", 425, {}, 502, "server_error", "upstream_error", 2, reroute=True),
    Row("failed dependency", 424, {}, 502, "server_error", "upstream_error", 3, reroute=True),
    Row("server error", 500, {}, 502, "server_error", "upstream_error", 3, reroute=True),
    Row("bad gateway", 502, {}, 502, "server_error", "upstream_error", 3, reroute=True),
    Row("rate limit", 429, {"code": "rate_limit_exceeded"}, 429, "rate_limit_error", "rate_limit_exceeded", 3,
        reroute=True, headers=SOON),
    Row("capacity at Groq", 498, {"code": "capacity_exceeded"}, 503, "server_error", "no_healthy_upstream", 3,
        reroute=True, headers=SOON),
    Row("overloaded", 503, {}, 503, "server_error", "no_healthy_upstream", 3, reroute=True, headers=SOON),
    Row("overloaded at Anthropic", 529, {}, 503, "server_error", "no_healthy_upstream", 3, reroute=True, headers=SOON),
    Row("overloaded at TGI, under a 429", 429, {}, 503, "server_error", "no_healthy_upstream", 3, reroute=True,
        headers=SOON, envelope={"error": "Model is overloaded", "error_type": "overloaded"}),
    Row("model is being loaded", 503, {"message": "Loading model"}, 503, "server_error", "no_healthy_upstream", 3,
        reroute=True, headers=SOON),
    Row("output that does not fit the schema", 400, {"code": "json_validate_failed"}, 502, "server_error",
        "schema_validation_failed", 2, reroute=True),
    Row("not implemented", 501, {}, 400, INVALID, "unsupported_parameter", reroute=True),
    Row("a page of HTML", 500, {}, 502, "server_error", "upstream_error", 3, reroute=True, envelope="<html>no</html>"),
    Row("a line of text", 503, {}, 503, "server_error", "no_healthy_upstream", 3, reroute=True, headers=SOON,
        envelope="no healthy upstream"),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
async def test_a_refusal_reaches_the_client_as_the_map_says(row: Row) -> None:
    async with ScriptedServer(row.script()) as only, running_gateway(config(only)) as gateway:
        got = await gateway.chat()

    error = got.error
    assert (got.status, error["type"], error["code"]) == (row.client, row.type, row.code)
    assert len(only.requests) == row.tries
    assert (error["provider"], error["upstream_status"]) == ("p1", row.upstream)
    assert error["request_id"] == got.headers["x-request-id"]
    assert error["message"]
    assert "html" not in error["message"]
    assert ("retry-after" in got.headers) == (row.client in (429, 503))
    if row.client == 502:
        assert got.headers["x-should-retry"] == "false", "it was tried again here, or it would be no use"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
async def test_another_target_answers_where_the_map_says_so(row: Row) -> None:
    async with (
        ScriptedServer(row.script()) as first,
        ScriptedServer([whole()]) as second,
        running_gateway(config(first, second)) as gateway,
    ):
        got = await gateway.chat()

    assert got.status == (200 if row.reroute else row.client)
    assert len(second.requests) == row.reroute


EVENTS = [
    ({"error": {"message": "m", "code": "rate_limit_exceeded"}}, 429, "rate_limit_exceeded", None),
    ({"error": {"message": "m", "type": "overloaded_error"}}, 503, "no_healthy_upstream", None),
    ({"error": {"message": "m", "code": 503}}, 503, "no_healthy_upstream", 503),
    ({"object": "error", "message": "maximum context length", "type": "BadRequestError", "code": 400}, 400,
     "context_length_exceeded", 400),
    ({"error": "m", "error_type": "overloaded"}, 503, "no_healthy_upstream", None),
    ({"error": {"object": "error", "type": "invalid_request_error", "message": "m"}}, 400, "invalid_value", None),
    ({"detail": "m"}, 502, "upstream_error", None),
]  # fmt: skip


@pytest.mark.parametrize(("payload", "status", "code", "told"), EVENTS)
async def test_an_error_event_before_any_content_is_as_good_as_a_status(
    payload: dict[str, Any], status: int, code: str, told: int | None
) -> None:
    async with (
        ScriptedServer(stream(ROLE, event(payload))) as only,
        running_gateway(config(only, retries={"attempts": 1})) as gateway,
    ):
        got = await gateway.chat(stream=True)

    assert (got.status, got.error["code"]) == (status, code)
    if told is not None:
        assert got.error["upstream_status"] == told


@pytest.mark.parametrize("payload", [payload for payload, *_ in EVENTS])
async def test_an_error_event_after_content_ends_the_stream_with_an_error_of_openais_shape(payload: Any) -> None:
    async with (
        ScriptedServer(stream(ROLE, delta(content="Hel"), event(payload))) as only,
        running_gateway(config(only)) as gateway,
    ):
        got = await gateway.chat(stream=True)

    last = payloads(got.body)[-1]
    assert got.status == 200
    assert isinstance(last["error"]["code"], str)
    assert last["error"]["message"]
    assert last["error"]["type"]
    assert last["error"]["provider"] == "p1"
    assert len(only.requests) == 1


async def test_a_larger_window_is_tried_after_an_overflow_but_not_a_smaller_one() -> None:
    overflow = [answer(b'{"error":{"code":"context_length_exceeded","message":"too long"}}', status=400)]
    async with (
        ScriptedServer(overflow) as first,
        ScriptedServer([whole()]) as smaller,
        ScriptedServer([whole()]) as larger,
    ):
        settings = config(first, smaller, larger)
        for target, window in zip(settings["models"]["m"]["targets"], (8192, 4096, 131072), strict=True):
            target["context_window"] = window
        async with running_gateway(settings) as gateway:
            got = await gateway.chat()

    assert (got.status, got.headers["x-gateway-target"]) == (200, "p3/up3")
    assert (len(first.requests), len(smaller.requests), len(larger.requests)) == (1, 0, 1)


async def test_an_overflow_of_the_largest_window_is_the_answer() -> None:
    overflow = [answer(b'{"error":{"code":"context_length_exceeded","message":"9000 of 8192"}}', status=400)]
    async with ScriptedServer(overflow) as first, ScriptedServer([whole()]) as smaller:
        settings = config(first, smaller)
        for target, window in zip(settings["models"]["m"]["targets"], (8192, 8192), strict=True):
            target["context_window"] = window
        async with running_gateway(settings) as gateway:
            got = await gateway.chat()

    assert (got.status, got.error["code"]) == (400, "context_length_exceeded")
    assert "9000 of 8192" in got.error["message"]
    assert not smaller.requests


# Keys


def two_keys(*servers: ScriptedServer) -> dict[str, Any]:
    settings = config(*servers)
    del settings["providers"]["p1"]["api_key"]
    settings["providers"]["p1"]["api_keys"] = ["sk-bad-0123456789", "sk-good-0123456789"]
    return settings


def by_key(bad: int, good: Script) -> Callable[[RecordedRequest], Script]:
    """Refuses the first of `two_keys` with the status *bad*."""
    return lambda sent: [answer(b"{}", status=bad)] if "bad" in sent.headers["authorization"] else good


@pytest.mark.parametrize("status", [401, 402, 403])
async def test_a_refused_key_rests_and_the_next_one_answers(status: int, caplog: pytest.LogCaptureFixture) -> None:
    async with (
        ScriptedServer(by_key(status, [whole()])) as server,
        running_gateway(two_keys(server)) as gateway,
    ):
        statuses = [(await gateway.chat()).status for _ in range(3)]

    used = ["bad" if "bad" in sent.headers["authorization"] else "good" for sent in server.requests]
    assert statuses == [200, 200, 200]
    assert used == ["bad", "good", "good", "good"]
    assert "p1 refused key 1 of 2; it rests for 15 minutes" in caplog.text
    assert "sk-bad" not in caplog.text


async def test_when_every_key_is_refused_each_has_been_tried_once_and_the_next_target_answers() -> None:
    async with (
        ScriptedServer([answer(b"{}", status=401)]) as first,
        ScriptedServer([whole()]) as second,
        running_gateway(two_keys(first, second)) as gateway,
    ):
        got = await gateway.chat()

    assert (got.status, len(first.requests), len(second.requests)) == (200, 2, 1)


async def test_what_the_second_key_hears_is_told_not_that_the_first_was_refused() -> None:
    async with (
        ScriptedServer(by_key(401, [answer(b"{}", status=429)])) as server,
        running_gateway(two_keys(server)) as gateway,
    ):
        got = await gateway.chat("x-gateway-timeout: 1.2")

    assert (got.status, got.error["code"], got.error["upstream_status"]) == (429, "rate_limit_exceeded", 429)


async def test_no_refusal_tells_a_key_an_account_or_an_address() -> None:
    said = "key sk-provider-secret-0123456789 of org_01abcdefgh at http://10.0.0.7:8000/v1 and gpu.internal is odd"
    body = json.dumps({"error": {"message": said, "type": "x", "code": "sk-provider-secret-0123456789"}}).encode()
    async with ScriptedServer([answer(body, status=400)]) as server, running_gateway(config(server)) as gateway:
        got = await gateway.chat()

    assert got.status == 400
    for secret in (b"sk-provider", b"org_01", b"10.0.0.7", b"gpu.internal"):
        assert secret not in got.body
