"""What providers tell of their limits is shown to the operator while it is worth something, and to no client."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.rate_limits import RateLimitReader
from adapters.registry import load_spec
from gateway.pipeline.upstream_limits import UpstreamLimits
from tests.fakes.gateway import config, running_gateway
from tests.fakes.openai_answers import refusal, whole
from tests.fakes.scripted_server import ScriptedServer

LEFT = "x-ratelimit-remaining-requests: {}\r\nx-ratelimit-reset-requests: 30s\r\n"
GAUGE = "gateway_upstream_ratelimit_remaining"


def groq() -> UpstreamLimits:
    return UpstreamLimits(RateLimitReader(load_spec("groq").rate_limit_headers))


def headers(remaining: object, reset: str | None = "7.66s") -> dict[str, str]:
    told = {"x-ratelimit-remaining-tokens": str(remaining)}
    return told if reset is None else told | {"x-ratelimit-reset-tokens": reset}


@pytest.mark.parametrize(("reset", "until"), [("7.66s", 7.66), (None, 60.0), ("5h", 300.0), ("nonsense", 60.0)])
def test_a_figure_is_good_until_its_reset(reset: str | None, until: float) -> None:
    limits = groq()
    limits.note(headers(5, reset), 100.0)

    assert dict(limits.remaining(100.0 + until - 0.01)) == {"tokens_minute": 5.0}
    assert dict(limits.remaining(100.0 + until)) == {}


def test_headers_are_due_again_after_a_second() -> None:
    limits = groq()
    limits.note(headers(5), 100.0)

    assert limits.due == 101.0


def test_an_answer_without_a_figure_leaves_the_last_one() -> None:
    limits = groq()
    limits.note(headers(5), 100.0)
    limits.note(headers("many"), 101.0)
    limits.note({}, 102.0)

    assert dict(limits.remaining(103.0)) == {"tokens_minute": 5.0}


async def test_what_is_left_is_a_gauge_and_no_header() -> None:
    async with ScriptedServer([whole(headers=LEFT.format(59))]) as server, running_gateway(config(server)) as gateway:
        got = await gateway.chat()
        shown = gateway.metric(GAUGE, provider="p1", kind="requests")

    assert shown == 59
    assert not [name for name in got.headers if name.startswith("x-ratelimit")]


async def test_of_several_targets_of_a_provider_the_one_nearest_to_its_end_is_shown() -> None:
    left = iter((7, 3, 5))
    async with ScriptedServer(lambda _: [whole(headers=LEFT.format(next(left)))]) as server:
        settings: dict[str, Any] = config(server)
        for name in ("n", "o"):
            settings["models"][name] = {"targets": [{"provider": "p1", "model": name}]}
        async with running_gateway(settings) as gateway:
            for name in ("m", "n", "o"):
                await gateway.chat(model=name)
            shown = gateway.metric(GAUGE, provider="p1")

    assert shown == 3


async def test_a_refusal_is_read_even_within_the_second_and_tells_how_long_to_wait() -> None:
    answers = [[whole(headers=LEFT.format(1))], [refusal(429, headers=LEFT.format(0))]]
    async with (
        ScriptedServer(lambda sent: answers[min(sent.number, 2) - 1]) as server,
        running_gateway(config(server)) as gateway,
    ):
        await gateway.chat()
        refused = await gateway.chat()
        shown = gateway.metric(GAUGE, provider="p1", kind="requests")

    assert (refused.status, refused.headers["retry-after"]) == (429, "30")
    assert shown == 0
    assert len(server.requests) == 2, "half a minute is too long to wait here"
