"""After which failure the same target is tried again, how often, and after which the next one at once."""

from __future__ import annotations

import socket

import pytest

from tests.fakes.gateway import config, running_gateway
from tests.fakes.openai_answers import refusal
from tests.fakes.scripted_server import Close, Hang, Reset, Script, ScriptedServer, answer
from tests.fakes.shapes import in_turn
from tests.unit.pipeline.two_targets import CUT_SHORT, GOOD, alone, both, failures

pytestmark = pytest.mark.usefixtures("short_backoff")


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


async def test_the_earliest_time_of_all_targets_is_told() -> None:
    got, _, _, _ = await both(
        [refusal(429, headers="retry-after: 77\r\n")], [refusal(429, headers="retry-after: 33\r\n")]
    )
    assert (got.status, got.headers["retry-after"]) == (429, "33")


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
