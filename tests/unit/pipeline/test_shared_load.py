"""Targets that share the load: by their weights, whatever single clients send, and without those that rest."""

from __future__ import annotations

import collections
import json
from typing import Any

from tests.fakes.gateway import config, running_gateway
from tests.fakes.openai_answers import refusal, whole
from tests.fakes.scripted_server import RecordedRequest, Script, ScriptedServer

GOOD: Script = [whole()]


def weighted(*servers: ScriptedServer, weights: tuple[float, ...] = (), **model: Any) -> dict[str, Any]:
    settings = config(*servers, route={"strategy": "weighted"}, **model)
    for target, weight in zip(settings["models"]["m"]["targets"], weights, strict=False):
        target["weight"] = weight
    return settings


async def test_both_of_two_targets_get_requests() -> None:
    async with (
        ScriptedServer(GOOD) as one,
        ScriptedServer(GOOD) as two,
        running_gateway(weighted(one, two)) as gateway,
    ):
        answers = [await gateway.chat() for _ in range(60)]
    told = collections.Counter(answer.headers["x-gateway-target"] for answer in answers)
    # Half of them each; that one of them gets less than five happens once in 10^12 runs.
    assert min(told["p1/up1"], told["p2/up2"]) >= 5
    assert (len(one.requests), len(two.requests)) == (told["p1/up1"], told["p2/up2"])


async def test_a_target_of_weight_0_is_for_when_no_other_answers() -> None:
    async with (
        ScriptedServer(lambda request: GOOD if request.number <= 20 else [refusal(404)]) as one,
        ScriptedServer(GOOD) as two,
        running_gateway(weighted(two, one, weights=(0, 1))) as gateway,
    ):
        answers = [await gateway.chat() for _ in range(21)]
    assert [answer.headers["x-gateway-target"] for answer in answers] == ["p2/up2"] * 20 + ["p1/up1"]


async def test_the_bad_requests_of_one_client_take_no_target_from_the_others() -> None:
    def picky(request: RecordedRequest) -> Script:
        bad = json.loads(request.body)["messages"][0]["content"] == "bad"
        return [refusal(400, "bad input", "Retry-After: 60\r\n")] if bad else GOOD

    async with (
        ScriptedServer(picky) as one,
        ScriptedServer(picky) as two,
        running_gateway(weighted(one, two)) as gateway,
    ):
        refused = [await gateway.chat(messages=[{"role": "user", "content": "bad"}]) for _ in range(10)]
        before = len(one.requests), len(two.requests)
        answers = [await gateway.chat() for _ in range(60)]
        shares = len(one.requests) - before[0], len(two.requests) - before[1]
    assert {answer.status for answer in refused} == {400}
    assert {answer.status for answer in answers} == {200}
    assert min(shares) >= 5


async def test_a_target_that_rests_is_not_drawn() -> None:
    limited: Script = [refusal(429, "slow down", "Retry-After: 60\r\n")]
    async with (
        ScriptedServer(limited) as one,
        ScriptedServer(GOOD) as two,
        running_gateway(weighted(one, two, weights=(1e6, 1e-3))) as gateway,
    ):
        answers = [await gateway.chat() for _ in range(10)]
    assert [answer.headers["x-gateway-target"] for answer in answers] == ["p2/up2"] * 10
    assert len(one.requests) == 1
