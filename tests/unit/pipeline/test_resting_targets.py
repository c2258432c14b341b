"""A target that says when to come back is left alone until then, and clients hear when that is."""

from __future__ import annotations

import json

import pytest

from tests.fakes.gateway import config, running_gateway
from tests.fakes.openai_answers import good_stream, refusal
from tests.fakes.scripted_server import RecordedRequest, Script, ScriptedServer
from tests.fakes.shapes import in_turn
from tests.unit.pipeline.resting import BUSY, GOOD, LIMITED, WAIT, Ahead


async def test_while_one_target_rests_the_other_takes_all_requests() -> None:
    async with (
        ScriptedServer(in_turn(LIMITED, GOOD)) as one,
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
    async with ScriptedServer(in_turn(script, good)) as one, running_gateway(config(one)) as gateway:
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
    async with ScriptedServer(in_turn(short, GOOD)) as one, running_gateway(config(one)) as gateway:
        got = await gateway.chat()
        again = await gateway.chat()
    assert (got.status, got.headers["x-gateway-attempts"]) == (200, "2")
    assert again.status == 200, "the rest is over"


async def test_a_short_rest_is_waited_for_when_all_others_have_failed() -> None:
    resting: Script = [refusal(429, "slow down", "retry-after-ms: 400\r\n")]
    async with (
        ScriptedServer(in_turn(resting, GOOD)) as one,
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
        ScriptedServer(in_turn([refusal(429)], GOOD)) as one,
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
    script = in_turn([refusal(429)], GOOD)
    async with ScriptedServer(script) as one, running_gateway(config(one, retries={"attempts": 1})) as gateway:
        first, second = await gateway.chat(), await gateway.chat()
    assert (first.status, second.status) == (429, 200)
