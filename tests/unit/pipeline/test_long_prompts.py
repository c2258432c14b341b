"""A prompt past the length from which a model costs more is charged by the dearer price, and no other is."""

from __future__ import annotations

import pytest

from adapters.registry import load_spec
from adapters.target import Target
from adapters.types import LongPrice, Price, Usage
from gateway.pipeline.holds import CountingLedger
from gateway.pipeline.tally import Tally
from tests.fakes.gateway import config, running_gateway
from tests.fakes.openai_answers import whole
from tests.fakes.scripted_server import ScriptedServer


@pytest.mark.parametrize(
    ("prompt", "cached", "usd"),
    # gpt-5.5 by its file: 5, 30 and 0.5 USD for a million tokens, past 272,000 of prompt 10, 45 and 1.
    [(272_000, 0, "1.360300000"), (272_001, 0, "2.720460000"), (300_000, 200_000, "1.200450000")],
)
async def test_the_length_of_the_prompt_decides_what_a_request_costs(prompt: int, cached: int, usd: str) -> None:
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": 10,
        "total_tokens": prompt + 10,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    async with ScriptedServer([whole(usage=usage)]) as server:
        settings = config(server)
        settings["providers"]["p1"]["type"] = "openai"
        settings["models"]["m"]["targets"] = [{"provider": "p1", "model": "gpt-5.5"}]
        async with running_gateway(settings) as gateway:
            got = await gateway.chat()
    assert (got.status, got.headers["x-gateway-cost-usd"]) == (200, usd)


def test_the_requests_of_one_attempt_are_charged_each_by_its_own_prompt() -> None:
    price = Price(1_000_000, 0, long=(LongPrice(100_000, 2_000_000, 0),))
    target = Target("p/m", "p", "m", load_spec("openai_compatible"), price=price)
    tally, hold = Tally(), CountingLedger().hold("key", target)
    for prompt in (80_000, 80_000, 120_000):
        tally.begin({}).usage = Usage(prompt, 1)

    tally.resolve(hold)

    assert hold.usage is not None
    assert hold.usage.prompt_tokens == 280_000
    assert hold.cost_nusd == (80_000 + 80_000 + 2 * 120_000) * 1000
