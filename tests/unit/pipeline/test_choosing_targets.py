"""Which targets are tried where they differ in what a request uses, and how far `unsupported` lets them go."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from adapters.adapter import Adapter
from tests.fakes.gateway import RunningGateway, config, running_gateway
from tests.fakes.openai_answers import completion
from tests.fakes.raw_client import Answer
from tests.fakes.scripted_server import ScriptedServer, answer

LACKS_BIAS = {"params": {"logit_bias": {"support": "rejected"}}}
LACKS_TOOLS = {"params": {"tools": {"support": "rejected"}}}
FEW_ALTERNATIVES = {"params": {"top_logprobs": {"support": "limited", "max": 2}}}
LACKS_SEED = {"params": {"seed": {"support": "rejected"}}}
BIAS: dict[str, Any] = {"logit_bias": {"5": 1}}


@contextlib.asynccontextmanager
async def two_targets(
    first: dict[str, Any], second: dict[str, Any] | None = None, **model: Any
) -> AsyncIterator[tuple[RunningGateway, ScriptedServer, ScriptedServer]]:
    """A model with two targets that differ from OpenAI in these facts."""
    good = [answer(json.dumps(completion()).encode())]
    async with ScriptedServer(good) as one, ScriptedServer(good) as two:
        settings = config(one, two, **model)
        settings["providers"]["p1"]["overrides"] = first
        settings["providers"]["p2"]["overrides"] = second or {}
        async with running_gateway(settings) as gateway:
            yield gateway, one, two


def by(got: Answer) -> str:
    """The target that answered."""
    assert got.status == 200, got.body
    return got.headers["x-gateway-target"]


def asked(word: str) -> str:
    return f"x-gateway-unsupported: {word}"


async def test_a_target_that_cannot_take_the_request_is_not_tried() -> None:
    async with two_targets(LACKS_BIAS) as (gateway, one, two):
        got = await gateway.chat(**BIAS)
        plain = await gateway.chat(logit_bias={})
    assert (by(got), got.headers["x-gateway-attempts"]) == ("p2/up2", "1")
    assert (by(plain), len(one.requests), len(two.requests)) == ("p1/up1", 1, 1)


async def test_without_a_target_that_can_the_answer_names_parameter_and_providers() -> None:
    async with two_targets(LACKS_BIAS, LACKS_BIAS) as (gateway, one, two):
        got = await gateway.chat(**BIAS)
        streamed = await gateway.chat(stream=True, **BIAS)
    for refused in (got, streamed):
        error = refused.error
        assert (refused.status, error["code"], error["param"]) == (400, "unsupported_parameter", "logit_bias")
        assert "p1" in error["message"]
        assert "p2" in error["message"]
    assert one.requests == two.requests == []


async def test_a_target_that_would_give_less_comes_last() -> None:
    async with two_targets(FEW_ALTERNATIVES) as (gateway, _, _):
        more = await gateway.chat(logprobs=True, top_logprobs=5)
        enough = await gateway.chat(logprobs=True, top_logprobs=2)
    assert (by(more), by(enough)) == ("p2/up2", "p1/up1")


async def test_a_target_whose_answers_are_too_short_comes_last() -> None:
    good = [answer(json.dumps(completion()).encode())]
    async with ScriptedServer(good) as one, ScriptedServer(good) as two:
        settings = config(one, two)
        settings["models"]["m"]["targets"][0]["max_output_tokens"] = 100
        async with running_gateway(settings) as gateway:
            long = await gateway.chat(max_tokens=200)
            short = await gateway.chat(max_tokens=50)
    assert (by(long), by(short)) == ("p2/up2", "p1/up1")


async def test_who_wants_it_emulated_keeps_the_order() -> None:
    async with two_targets(FEW_ALTERNATIVES) as (gateway, one, _):
        got = await gateway.chat(asked("emulate"), logprobs=True, top_logprobs=5)
    assert (by(got), got.headers["x-gateway-adjusted"]) == ("p1/up1", "top_logprobs=clamped")
    assert json.loads(one.requests[0].body)["top_logprobs"] == 2


async def test_who_wants_it_dropped_gets_it_from_who_has_it_first() -> None:
    async with two_targets(LACKS_BIAS) as (gateway, _, _):
        kept = await gateway.chat(asked("drop"), **BIAS)
    async with two_targets(LACKS_BIAS, LACKS_BIAS) as (gateway, one, _):
        dropped = await gateway.chat(asked("Drop"), **BIAS)
    assert (by(kept), "x-gateway-adjusted" in kept.headers) == ("p2/up2", False)
    assert (by(dropped), dropped.headers["x-gateway-adjusted"]) == ("p1/up1", "logit_bias=dropped")
    assert "logit_bias" not in json.loads(one.requests[0].body)


async def test_who_wants_nothing_changed_gets_the_target_that_changes_nothing() -> None:
    async with two_targets(LACKS_SEED) as (gateway, _, _):
        strict = await gateway.chat(asked("reject"), seed=1)
        lax = await gateway.chat(seed=1)
    async with two_targets(LACKS_SEED, LACKS_SEED) as (gateway, _, _):
        refused = await gateway.chat(asked("reject"), seed=1)
    assert (by(strict), by(lax)) == ("p2/up2", "p1/up1")
    assert (refused.status, refused.error["param"]) == (400, "seed")


async def test_a_model_has_its_own_word_and_the_client_the_last() -> None:
    async with two_targets(LACKS_BIAS, LACKS_BIAS, unsupported="drop") as (gateway, _, _):
        dropped = await gateway.chat(**BIAS)
        refused = await gateway.chat(asked("auto"), **BIAS)
    assert (dropped.status, refused.status) == (200, 400)


@pytest.mark.parametrize("word", ["", "yes", "drop, reject"])
async def test_a_word_that_is_none_is_refused_with_those_there_are(word: str) -> None:
    async with two_targets({}) as (gateway, one, _):
        got = await gateway.chat(asked(word))
    assert (got.status, one.requests) == (400, [])
    assert "auto, emulate, reject, drop" in got.error["message"]


async def test_a_fallback_is_patched_anew() -> None:
    busy = [answer(b'{"error":{"message":"busy"}}', status=429)]
    good = [answer(json.dumps(completion()).encode())]
    async with ScriptedServer(busy) as one, ScriptedServer(good) as two:
        settings = config(one, two, unsupported="drop")
        settings["providers"]["p2"]["overrides"] = LACKS_BIAS
        async with running_gateway(settings) as gateway:
            got = await gateway.chat(user="u", **BIAS)
    assert (by(got), got.headers["x-gateway-adjusted"]) == ("p2/up2", "logit_bias=dropped")
    assert json.loads(one.requests[0].body)["logit_bias"] == {"5": 1}
    assert "logit_bias" not in json.loads(two.requests[0].body)


async def test_what_was_prepared_to_choose_is_what_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared: list[str] = []
    prepare = Adapter.prepare

    def noted(self: Adapter, *args: Any, **options: Any) -> Any:
        prepared.append(self.target.name)
        return prepare(self, *args, **options)

    async with two_targets(LACKS_BIAS) as (gateway, _, _):
        monkeypatch.setattr(Adapter, "prepare", noted)
        await gateway.chat(**BIAS)
        chosen = list(prepared)
        prepared.clear()
        await gateway.chat()
    assert (chosen, prepared) == (["p1/up1", "p2/up2"], ["p1/up1"])


# extra_body, where SDKs would not have sent it


async def test_what_stands_in_extra_body_is_sent_beside_the_rest() -> None:
    async with two_targets({}) as (gateway, one, _):
        got = await gateway.chat(extra_body={"top_k": 5, "temperature": 1}, temperature=0.5)
        empty = await gateway.chat(extra_body={})
        null = await gateway.chat(extra_body=None)
    assert (got.status, empty.status, null.status) == (200, 200, 200)
    first, *others = [json.loads(request.body) for request in one.requests]
    assert (first["top_k"], first["temperature"]) == (5, 0.5)
    assert all("extra_body" not in sent for sent in (first, *others))


@pytest.mark.parametrize(("extra", "param"), [([], "extra_body"), ("x", "extra_body"), ({"n": 0}, "n")])
async def test_extra_body_is_checked_like_the_rest(extra: Any, param: str) -> None:
    async with two_targets({}) as (gateway, one, _):
        got = await gateway.chat(extra_body=extra)
    assert (got.status, got.error["param"], one.requests) == (400, param, [])


async def test_names_that_a_client_makes_up_stay_within_one_header() -> None:
    strict = {"transport": {"unknown_body_fields": {"support": "rejected"}}}
    split: dict[str, Any] = {"a\r\nx-evil: 1": 1, "b, ä": 1}
    made_up: dict[str, Any] = {f"made_up_{number:05}": 1 for number in range(20_000)}
    async with two_targets(strict) as (gateway, one, _):
        evil = await gateway.chat(**split)
        many = await gateway.chat(**made_up)
        rows = await gateway.rows()

    assert evil.headers["x-gateway-adjusted"] == "a??x-evil:?1=dropped, b???=dropped"
    assert "x-evil" not in evil.headers
    assert many.headers["x-gateway-adjusted"].endswith("made_up_00063=dropped, and 19936 more")
    assert json.loads(one.requests[-1].body).keys() == {"model", "messages"}
    assert [row["adjusted"] for row in rows] == [each.headers["x-gateway-adjusted"] for each in (evil, many)]
