"""A target that says when to come back is left alone until then, and clients hear when that is."""

from __future__ import annotations

import email.utils
import json
import time
from typing import Any

import pytest

from tests.fakes.gateway import RunningGateway, config, running_gateway
from tests.fakes.openai_answers import ROLE, delta, event, good_stream, payloads, refusal, stream, whole
from tests.fakes.scripted_server import RecordedRequest, Script, ScriptedServer

WAIT = "Retry-After: 20\r\n"
LIMITED: Script = [refusal(429, "slow down", WAIT)]
BUSY: Script = [refusal(503, "full", WAIT)]
GOOD: Script = [whole()]


def first_then(first: Script, later: Script = GOOD) -> Any:
    """*first* for the first request, *later* for the others."""
    return lambda request: first if request.number == 1 else later


class Ahead:
    """The gateway's clock, which a test can put forward."""

    def __init__(self, gateway: RunningGateway) -> None:
        self.seconds = 0.0
        gateway.services.clock = lambda: time.monotonic() + self.seconds


async def test_while_one_target_rests_the_other_takes_all_requests() -> None:
    async with (
        ScriptedServer(first_then(LIMITED)) as one,
        ScriptedServer(GOOD) as two,
        running_gateway(config(one, two)) as gateway,
    ):
        clock = Ahead(gateway)
        got = [await gateway.chat() for _ in range(5)]
        seen = len(one.requests), len(two.requests)
        clock.seconds = 20.1
        after = await gateway.chat()
    assert [answer.status for answer in got] == [200] * 5
    assert [answer.headers["x-gateway-target"] for answer in got] == ["p2/up2"] * 5
    assert seen == (1, 5)
    assert after.headers["x-gateway-target"] == "p1/up1"


@pytest.mark.parametrize(
    ("script", "status", "code", "kind"),
    [
        (LIMITED, 429, "rate_limit_exceeded", "rate_limit_error"),
        (BUSY, 503, "no_healthy_upstream", "server_error"),
        ([refusal(529, "full", WAIT)], 503, "no_healthy_upstream", "server_error"),
    ],
    ids=["429", "503", "529"],
)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_while_all_rest_a_request_is_refused_at_once(
    script: Script, status: int, code: str, kind: str, streamed: bool
) -> None:
    good = good_stream() if streamed else GOOD
    async with ScriptedServer(first_then(script, good)) as one, running_gateway(config(one)) as gateway:
        clock = Ahead(gateway)
        await gateway.chat(stream=streamed)
        clock.seconds = 5
        got = await gateway.chat(stream=streamed)
        rows = await gateway.rows()
        holds = gateway.services.ledger.open_holds
        seen = len(one.requests)
        clock.seconds = 20.1
        after = await gateway.chat(stream=streamed)
    assert got.status == status
    error = json.loads(got.body)["error"]
    assert (error["code"], error["type"]) == (code, kind)
    assert "p1 is" in error["message"]
    assert "try again in 1" in error["message"]
    assert 14 <= int(got.headers["retry-after"]) <= 16
    assert 14_000 <= int(got.headers["retry-after-ms"]) <= 15_000
    assert seen == 1
    assert holds == 0
    assert (rows[1]["status"], rows[1]["attempts"], rows[1]["cost_nusd"]) == (status, [], None)
    assert after.status == 200


async def test_the_refusal_names_the_first_target_to_come_back() -> None:
    sooner: Script = [refusal(429, "slow down", "Retry-After: 9\r\n")]
    async with (
        ScriptedServer(LIMITED) as one,
        ScriptedServer(sooner) as two,
        running_gateway(config(one, two)) as gateway,
    ):
        first, second = await gateway.chat(), await gateway.chat()
    assert (first.status, second.status) == (429, 429)
    assert first.headers["retry-after"] == "9"
    assert 8 <= int(second.headers["retry-after"]) <= 9
    assert (len(one.requests), len(two.requests)) == (1, 1)


def in_words(seconds: int) -> str:
    return email.utils.formatdate(time.time() + seconds, usegmt=True)


FORMS = [
    pytest.param("openai_compatible", lambda: "Retry-After: 20\r\n", 20, id="seconds"),
    pytest.param("openai_compatible", lambda: "Retry-After: 19.25\r\n", 20, id="decimals"),
    pytest.param("openai_compatible", lambda: f"Retry-After: {in_words(20)}\r\n", 20, id="date"),
    pytest.param("openai_compatible", lambda: f"Retry-After: {int(time.time()) + 20}\r\n", 20, id="since-1970"),
    pytest.param("openai_compatible", lambda: "retry-after-ms: 19500\r\nRetry-After: 60\r\n", 20, id="milliseconds"),
    pytest.param("openai_compatible", lambda: "Retry-After: 100000\r\n", 300, id="capped"),
    pytest.param(
        "openai_compatible",
        lambda: "x-ratelimit-remaining-requests: 0\r\nx-ratelimit-reset-requests: 20s\r\n",
        20,
        id="reset",
    ),
    pytest.param(
        "groq",
        lambda: (
            "x-ratelimit-remaining-requests: 7\r\nx-ratelimit-reset-requests: 1h0m0s\r\n"
            "x-ratelimit-remaining-tokens: 0\r\nx-ratelimit-reset-tokens: 19.56s\r\n"
        ),
        20,
        id="groq",
    ),
    pytest.param(
        "cerebras",
        lambda: "x-ratelimit-remaining-tokens-minute: 0\r\nx-ratelimit-reset-tokens-minute: 19.38286\r\n",
        20,
        id="cerebras",
    ),
    pytest.param("together", lambda: "x-ratelimit-reset: 20\r\n", 20, id="together"),
]


@pytest.mark.parametrize(("kind", "headers", "seconds"), FORMS)
async def test_a_rest_is_understood_in_every_form(kind: str, headers: Any, seconds: int) -> None:
    async with ScriptedServer([refusal(429, "no", headers())]) as one, ScriptedServer(GOOD) as two:
        settings = config(one, two)
        settings["providers"]["p1"]["type"] = kind
        settings["models"]["alone"] = {"targets": settings["models"]["m"]["targets"][:1]}
        async with running_gateway(settings) as gateway:
            for _ in range(2):
                assert (await gateway.chat()).headers["x-gateway-target"] == "p2/up2"
            refused = await gateway.chat(model="alone")
    assert refused.status == 429
    assert seconds - 2 <= int(refused.headers["retry-after"]) <= seconds
    assert len(one.requests) == 1, "another name for the same target rests with it"


@pytest.mark.parametrize("where", ["message", "event"])
async def test_a_rest_that_is_asked_for_in_a_body_counts_as_well(where: str) -> None:
    told = {"message": "Rate limit reached. Please try again in 20s.", "code": "rate_limit_exceeded"}
    script: Script = [refusal(429, **told)] if where == "message" else stream(event({"error": told}))
    async with (
        ScriptedServer(script) as one,
        ScriptedServer(good_stream()) as two,
        running_gateway(config(one, two)) as gateway,
    ):
        got = [await gateway.chat(stream=True) for _ in range(2)]
    assert [answer.status for answer in got] == [200, 200]
    assert len(one.requests) == 1


async def test_a_limit_in_the_middle_of_a_stream_lets_the_target_rest() -> None:
    told = {"message": "Rate limit reached. Please try again in 20s.", "code": "rate_limit_exceeded"}
    broken = stream(ROLE, delta(content="Hel"), event({"error": told}))
    async with (
        ScriptedServer(broken) as one,
        ScriptedServer(good_stream()) as two,
        running_gateway(config(one, two)) as gateway,
    ):
        first, second = [await gateway.chat(stream=True) for _ in range(2)]
    assert "error" in payloads(first.body)[-1]
    assert payloads(second.body)[-1] == "[DONE]"
    assert (len(one.requests), len(two.requests)) == (1, 1)


async def test_another_model_of_the_provider_does_not_rest() -> None:
    def by_model(request: RecordedRequest) -> Script:
        return LIMITED if json.loads(request.body)["model"] == "up1" else GOOD

    async with ScriptedServer(by_model) as one:
        settings = config(one)
        settings["models"]["n"] = {"targets": [{"provider": "p1", "model": "other"}]}
        async with running_gateway(settings) as gateway:
            await gateway.chat()
            refused, other = await gateway.chat(), await gateway.chat(model="n")
    assert (refused.status, other.status) == (429, 200)
    assert len(one.requests) == 2


async def test_a_limit_is_waited_for_within_the_request_that_met_it() -> None:
    short: Script = [refusal(429, "slow down", "retry-after-ms: 150\r\n")]
    async with ScriptedServer(first_then(short)) as one, running_gateway(config(one)) as gateway:
        got = await gateway.chat()
        again = await gateway.chat()
    assert (got.status, got.headers["x-gateway-attempts"]) == (200, "2")
    assert again.status == 200, "the rest is over"


async def test_a_short_rest_is_waited_for_when_all_others_have_failed() -> None:
    resting: Script = [refusal(429, "slow down", "retry-after-ms: 400\r\n")]
    async with (
        ScriptedServer(first_then(resting)) as one,
        ScriptedServer(lambda r: GOOD if r.number == 1 else BAD) as two,
        running_gateway(config(one, two, retries={"attempts": 2})) as gateway,
    ):
        first = await gateway.chat()
        second = await gateway.chat()
        rows = await gateway.rows()
    assert first.headers["x-gateway-target"] == "p2/up2"
    assert (second.status, second.headers["x-gateway-target"]) == (200, "p1/up1")
    assert [attempt["target"] for attempt in rows[1]["attempts"]] == ["p2/up2", "p1/up1"]


BAD: Script = [refusal(400, "wrong model", code="model_not_found")]


async def test_a_long_rest_is_not_waited_for_and_what_was_asked_speaks() -> None:
    async with (
        ScriptedServer(LIMITED) as one,
        ScriptedServer(lambda r: GOOD if r.number == 1 else BAD) as two,
        running_gateway(config(one, two)) as gateway,
    ):
        await gateway.chat()
        got = await gateway.chat()
    assert got.status == 502
    assert len(one.requests) == 1


async def test_a_target_that_lacks_what_is_asked_leaves_the_word_to_the_one_that_rests() -> None:
    async with ScriptedServer(LIMITED) as one, ScriptedServer(GOOD) as two:
        settings = config(one, two, unsupported="reject")
        settings["models"]["m"]["targets"][1]["overrides"] = {
            "params": {"logprobs": {"support": "rejected", "patch": "error"}}
        }
        async with running_gateway(settings) as gateway:
            await gateway.chat()
            refused = await gateway.chat(logprobs=True)
            plain = await gateway.chat()
    assert (refused.status, refused.headers["retry-after"]) == (429, "20")
    assert plain.status == 200


async def test_a_bad_request_of_one_client_lets_nobody_rest() -> None:
    def picky(request: RecordedRequest) -> Script:
        bad = json.loads(request.body)["messages"][0]["content"] == "bad"
        return [refusal(413, "too large", WAIT, code="rate_limit_exceeded")] if bad else GOOD

    async with ScriptedServer(picky) as one, running_gateway(config(one)) as gateway:
        refused = [await gateway.chat(messages=[{"role": "user", "content": "bad"}]) for _ in range(3)]
        got = await gateway.chat()
    assert {answer.status for answer in refused} == {429}
    assert got.status == 200


async def test_a_rate_limit_without_a_time_sends_the_next_requests_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.pipeline.rests.random.random", lambda: 1.0)
    async with (
        ScriptedServer(first_then([refusal(429)])) as one,
        ScriptedServer(GOOD) as two,
        running_gateway(config(one, two)) as gateway,
    ):
        clock = Ahead(gateway)
        got = [await gateway.chat() for _ in range(3)]
        clock.seconds = 1.1
        after = await gateway.chat()
    assert [answer.headers["x-gateway-target"] for answer in got] == ["p2/up2"] * 3
    assert after.headers["x-gateway-target"] == "p1/up1"


async def test_a_guessed_rest_refuses_nobody() -> None:
    script = first_then([refusal(429)])
    async with ScriptedServer(script) as one, running_gateway(config(one, retries={"attempts": 1})) as gateway:
        first, second = await gateway.chat(), await gateway.chat()
    assert (first.status, second.status) == (429, 200)
