"""In which forms and places an upstream says when to come back."""

from __future__ import annotations

import email.utils
import time
from typing import Any

import pytest

from tests.fakes.gateway import config, running_gateway
from tests.fakes.openai_answers import ROLE, delta, event, good_stream, payloads, refusal, stream
from tests.fakes.scripted_server import Script, ScriptedServer
from tests.unit.pipeline.resting import GOOD


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
