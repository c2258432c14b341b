"""What the client hears when a target cannot answer, or none can: whose failure, and what was changed."""

from __future__ import annotations

import asyncio

import pytest

from tests.fakes.gateway import config, provider, running_gateway
from tests.fakes.openai_answers import refusal, whole
from tests.fakes.scripted_server import Close, Reset, Script, ScriptedServer, Sleep
from tests.unit.pipeline.two_targets import GOOD, alone, both, failures

pytestmark = pytest.mark.usefixtures("short_backoff")


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
