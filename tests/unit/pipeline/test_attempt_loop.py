"""Which target is tried after which failure, how often, and what the client hears when none answers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import pytest

import policies.retry
from tests.fakes.gateway import config, provider, running_gateway
from tests.fakes.openai_answers import refusal, whole
from tests.fakes.scripted_server import Close, Hang, RecordedRequest, Reset, Script, ScriptedServer, Sleep, answer

GOOD: Script = [whole()]
CUT_SHORT = whole()[:-40]


@pytest.fixture(autouse=True)
def short_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies.retry, "BASE_BACKOFF_SECONDS", 0.01)
    monkeypatch.setattr(policies.retry, "MAX_BACKOFF_SECONDS", 0.02)


def in_turn(*scripts: Script) -> Callable[[RecordedRequest], Script]:
    """Each request gets the next script, the last one for ever."""
    return lambda request: scripts[min(request.number, len(scripts)) - 1]


def failures(row: dict[str, Any]) -> list[tuple[str, str | None]]:
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


LOUD = [
    pytest.param([refusal(500)], "server_error", id="500"),
    pytest.param([refusal(503)], "overloaded", id="503"),
    pytest.param([refusal(529)], "overloaded", id="529"),
    pytest.param([Reset()], "reset", id="reset"),
    pytest.param([Close()], "reset", id="closed"),
    pytest.param([CUT_SHORT, Close()], "reset", id="cut-in-the-body"),
    pytest.param([CUT_SHORT, Reset()], "reset", id="reset-in-the-body"),
    pytest.param([answer(b"{}")], "empty", id="empty"),
    pytest.param([answer(b"nonsense")], "malformed", id="malformed"),
]


@pytest.mark.parametrize(("script", "kind"), LOUD)
async def test_a_loud_failure_is_tried_again_on_the_same_target(script: Script, kind: str) -> None:
    got, row, first, second = await both(in_turn(script, GOOD))
    assert (got.status, first, second) == (200, 2, 0)
    assert got.headers["x-gateway-attempts"] == "2"
    assert "x-gateway-fallback-from" not in got.headers
    assert failures(row) == [("p1/up1", kind), ("p1/up1", None)]


async def test_a_target_is_tried_three_times_before_the_next() -> None:
    got, row, first, second = await both([refusal(500)])
    assert (got.status, first, second) == (200, 3, 1)
    assert got.headers["x-gateway-attempts"] == "4"
    assert got.headers["x-gateway-target"] == "p2/up2"
    assert got.headers["x-gateway-fallback-from"] == "p1/up1"
    assert [kind for _, kind in failures(row)] == ["server_error"] * 3 + [None]


async def test_the_number_of_tries_is_the_models_own() -> None:
    _, _, first, second = await both([refusal(500)], retries={"attempts": 1})
    assert (first, second) == (1, 1)


async def test_a_client_that_retries_itself_gets_fewer_tries() -> None:
    _, _, first, second = await both([refusal(500)], GOOD, "X-Stainless-Retry-Count: 1")
    assert (first, second) == (2, 1)


async def test_the_first_try_of_a_client_counts_as_none() -> None:
    _, _, first, _ = await both([refusal(500)], GOOD, "X-Stainless-Retry-Count: 0")
    assert first == 3


async def test_a_silent_failure_goes_straight_to_the_next_target() -> None:
    got, row, first, second = await both([Hang()], timeouts={"first_event": "100ms"})
    assert (got.status, first, second) == (200, 1, 1)
    assert failures(row) == [("p1/up1", "first_content_timeout"), ("p2/up2", None)]
    assert row["attempts"][0]["estimated"]  # it may have worked on it


async def test_where_nobody_listens_another_target_is_taken_at_once() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        async with ScriptedServer(GOOD) as two, running_gateway(config(port, two)) as gateway:
            got = await gateway.chat()
            row = await gateway.row()
    assert got.status == 200
    assert failures(row) == [("p1/up1", "connect"), ("p2/up2", None)]
    assert row["attempts"][0]["cost_nusd"] is None


async def test_where_nobody_listens_is_tried_again_when_there_is_nothing_else() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        async with running_gateway(config(closed.getsockname()[1])) as gateway:
            got = await gateway.chat()
            row = await gateway.row()
    assert (got.status, got.error["code"], len(row["attempts"])) == (502, "upstream_error", 3)


async def test_a_rate_limit_takes_another_target_at_once() -> None:
    got, _, first, second = await both([refusal(429, headers="retry-after: 1\r\n")])
    assert (got.status, first, second) == (200, 1, 1)


async def test_a_rate_limit_is_waited_for_when_there_is_no_other_target() -> None:
    script = in_turn([refusal(429, headers="retry-after-ms: 300\r\n")], GOOD)
    got, row, requests = await alone(script)
    assert (got.status, requests) == (200, 2)
    assert row["attempts"][1]["started_ms"] >= 300
    assert row["total_ms"] >= 300 > row["overhead_ms"]  # the wait was no work of ours
    own = float(got.headers["server-timing"].partition("gw;dur=")[2].partition(",")[0])
    assert own < 300


async def test_a_long_rate_limit_is_passed_on_with_its_time() -> None:
    got, _, requests = await alone([refusal(429, headers="retry-after: 77\r\n")])
    assert (got.status, got.error["code"], requests) == (429, "rate_limit_exceeded", 1)
    assert got.headers["retry-after"] == "77"
    assert got.headers["retry-after-ms"] == "77000"


@pytest.mark.parametrize(
    "script",
    [
        pytest.param([refusal(429, "x" * 300_000, headers="retry-after: 77\r\n")], id="huge"),
        pytest.param([refusal(429, "x" * 100, headers="retry-after: 77\r\n")[:-50], Close()], id="cut-short"),
        pytest.param([refusal(429, "x" * 100, headers="retry-after: 77\r\n")[:-50], Reset()], id="reset"),
    ],
)
async def test_a_refusal_counts_by_its_status_when_its_words_cannot_be_read(script: Script) -> None:
    got, row, requests = await alone(script)
    assert (got.status, got.headers["retry-after"], requests) == (429, "77", 1)
    assert failures(row) == [("p1/up1", "rate_limited")]


async def test_the_earliest_time_of_all_targets_is_told() -> None:
    got, _, _, _ = await both(
        [refusal(429, headers="retry-after: 77\r\n")], [refusal(429, headers="retry-after: 33\r\n")]
    )
    assert (got.status, got.headers["retry-after"]) == (429, "33")


@pytest.mark.parametrize(
    ("script", "code", "param"),
    [
        ([refusal(400, "no such thing", param="top_p", code="invalid_value")], "invalid_value", "top_p"),
        ([refusal(422, "no such thing", param="top_p")], "invalid_value", "top_p"),
        ([refusal(400, "nope", code="content_policy_violation")], "content_filter", None),
        ([refusal(400, "rejected by our safety system")], "content_filter", None),
    ],
)
async def test_a_refusal_of_the_request_itself_ends_the_call(script: Script, code: str, param: str | None) -> None:
    got, _, first, second = await both(script)
    assert (got.status, first, second) == (400, 1, 0)
    assert (got.error["code"], got.error["param"], got.error["provider"]) == (code, param, "p1")


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        ([refusal(400, "too long", code="context_length_exceeded")], "context_length"),
        ([refusal(400, "This model's maximum context length is 4096 tokens")], "context_length"),
        ([refusal(404, "no such model")], "not_found"),
        ([refusal(401, "who?")], "auth"),
        ([refusal(402, "pay")], "payment"),
        ([refusal(429, "pay", code="insufficient_quota")], "payment"),
        ([answer(b"<html>", content_type="text/html")], "wrong_content_type"),
        ([answer(b"", status=302)], "redirect"),
    ],
)
async def test_what_the_same_target_would_say_again_goes_to_the_next(script: Script, kind: str) -> None:
    got, row, first, second = await both(script)
    assert (got.status, first, second) == (200, 1, 1)
    assert failures(row)[0] == ("p1/up1", kind)


@pytest.mark.parametrize("status", [408, 504, 524])
async def test_a_timeout_that_the_upstream_tells_of_is_tried_once_more(status: int) -> None:
    _, _, first, second = await both([refusal(status)])
    assert (first, second) == (2, 1)


async def test_a_target_without_a_parameter_is_passed_over() -> None:
    refusing = {"params": {"logit_bias": {"support": "rejected", "patch": "error"}}}
    async with ScriptedServer(GOOD) as one, ScriptedServer(GOOD) as two:
        settings = config(one, two)
        settings["providers"]["p1"]["overrides"] = refusing
        async with running_gateway(settings) as gateway:
            got = await gateway.chat(logit_bias={"5": 1})
            row = await gateway.row()
    assert (got.status, len(one.requests), len(two.requests)) == (200, 0, 1)
    assert failures(row) == [("p2/up2", None)]


async def test_a_parameter_no_target_has_is_a_400_that_names_it() -> None:
    refusing = {"params": {"logit_bias": {"support": "rejected", "patch": "error"}}}
    async with ScriptedServer(GOOD) as one:
        settings = config(one)
        settings["providers"]["p1"]["overrides"] = refusing
        async with running_gateway(settings) as gateway:
            got = await gateway.chat(logit_bias={"5": 1})
            neutral = await gateway.chat(logit_bias={})
    assert (got.status, got.error["code"], got.error["param"]) == (400, "unsupported_parameter", "logit_bias")
    assert got.error["provider"] == "p1"
    assert (neutral.status, len(one.requests)) == (200, 1)


async def test_what_was_changed_for_the_target_is_told() -> None:
    async with ScriptedServer(GOOD) as one:
        settings = config(one)
        settings["providers"]["p1"]["overrides"] = {
            "params": {
                "max_completion_tokens": {"support": "renamed", "to": "max_tokens"},
                "user": {"support": "rejected", "patch": "strip"},
            }
        }
        async with running_gateway(settings) as gateway:
            got = await gateway.chat(max_completion_tokens=5, user="u")
            row = await gateway.row()
            counted = gateway.metric("gateway_params_adjusted_total", param="user", action="dropped")
    told = set(got.headers["x-gateway-adjusted"].split(", "))
    assert told == {"max_completion_tokens=renamed", "user=dropped"} == set(row["adjusted"].split(", "))
    assert counted == 1
    assert b'"max_tokens":5' in one.requests[0].body
    assert b"user" not in one.requests[0].body.replace(b'"role":"user"', b"").replace(b'"role": "user"', b"")


async def test_the_first_failure_speaks_for_all() -> None:
    got, row, _, second = await both([refusal(503, "overloaded just now")], [refusal(400, "no logit_bias here")])
    assert (got.status, second) == (503, 1)
    assert got.error["message"].startswith("overloaded just now")
    assert got.error["upstream_status"] == 503
    assert "retry-after" in got.headers
    assert row["error_code"] == "no_healthy_upstream"


async def test_the_attempts_are_listed_when_several_failed() -> None:
    got, _, _, _ = await both([refusal(500, "boom")], [refusal(500, "boom")], retries={"attempts": 1})
    assert got.status == 502
    assert got.error["message"] == "boom. Attempts: p1/up1 server_error, p2/up2 server_error."
    assert got.headers["x-should-retry"] == "false"
    assert got.headers["x-gateway-attempts"] == "2"


async def test_a_target_that_could_not_take_the_request_does_not_speak() -> None:
    async with ScriptedServer(GOOD) as one, ScriptedServer([refusal(500, "boom")]) as two:
        settings = config(one, two)
        settings["providers"]["p1"]["overrides"] = {"params": {"logit_bias": {"support": "rejected", "patch": "error"}}}
        async with running_gateway(settings) as gateway:
            got = await gateway.chat(logit_bias={"5": 1})
    assert (got.status, got.error["provider"]) == (502, "p2")


async def test_no_request_is_ever_tried_more_than_nine_times() -> None:
    async with ScriptedServer([refusal(500)]) as down:
        settings = config(down, down, down, down, retries={"attempts": 10})
        async with running_gateway(settings) as gateway:
            got = await gateway.chat()
            assert gateway.metric("gateway_retries_total") + gateway.metric("gateway_fallbacks_total") == 8
    assert got.status == 502
    assert len(down.requests) == 9


async def test_the_clients_deadline_ends_the_retries() -> None:
    got, _, requests = await alone([refusal(500)], "X-Gateway-Timeout: 0.9")
    assert (got.status, requests) == (502, 1)


async def test_the_clients_deadline_ends_an_attempt() -> None:
    got, row, first, second = await both([Hang()], GOOD, "X-Gateway-Timeout: 0.15")
    assert (got.status, got.error["code"], first, second) == (504, "upstream_timeout", 1, 0)
    assert failures(row) == [("p1/up1", "total_timeout")]


@pytest.mark.parametrize("value", ["0", "-1", "soon", "nan", "inf", "90000"])
async def test_a_deadline_that_is_none_is_refused(value: str) -> None:
    async with ScriptedServer(GOOD) as one, running_gateway(config(one)) as gateway:
        got = await gateway.chat(f"X-Gateway-Timeout: {value}", "X-Request-Id: mine-1")
    assert (got.status, len(one.requests)) == (400, 0)
    assert "x-gateway-timeout" in got.error["message"]
    assert got.error["request_id"] == got.headers["x-request-id"] == "mine-1"


async def test_a_provider_with_all_it_may_have_gives_way_to_the_next() -> None:
    async with ScriptedServer([Sleep(0.3), whole("slow")]) as one, ScriptedServer(GOOD) as two:
        settings = config(one, two)
        settings["providers"]["p1"] = provider(one, max_concurrency=1)
        async with running_gateway(settings) as gateway:
            slow = asyncio.create_task(gateway.chat())
            await one.wait_until(lambda it: bool(it.requests))
            quick = await gateway.chat()
            await slow
            again = await gateway.chat()
    assert quick.headers["x-gateway-target"] == "p2/up2"
    assert again.headers["x-gateway-target"] == "p1/up1"
