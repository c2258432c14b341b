"""Against what its own file describes, the probe finds nothing that differs, whichever file it is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from adapters.registry import load_spec, preset_types, provider_types
from adapters.types import Operation
from gateway.probe.battery import probe, simulation
from gateway.probe.finding import Verdict
from gateway.probe.samples import USES
from gateway.probe.seen import Seen
from gateway.probe.session import UnreachableError
from tests.unit.probe.playing import drift, probed, target_of


def chatting() -> Iterator[str]:
    for name in (*provider_types(), *preset_types()):
        endpoint = load_spec(name).endpoints.get(Operation.CHAT)
        if endpoint is not None and endpoint.available:
            yield name


def served(provider: str) -> Iterator[str]:
    spec = load_spec(provider)
    return (model.id for model in spec.models if model.offered)


@pytest.mark.parametrize("provider", sorted(set(chatting())))
async def test_a_provider_that_does_what_its_file_says_shows_no_drift(provider: str) -> None:
    assert drift(await probed(provider)) == {}


@pytest.mark.parametrize(
    ("provider", "model"),
    [(name, model) for name in ("groq", "cerebras", "together", "fireworks", "openai") for model in served(name)],
)
async def test_no_model_of_a_hosted_provider_shows_drift(provider: str, model: str) -> None:
    assert drift(await probed(provider, model=model)) == {}


@pytest.mark.parametrize("provider", ["groq", "cerebras", "together", "fireworks"])
async def test_every_parameter_of_the_file_has_a_verdict(provider: str) -> None:
    told = {one.fact for one in await probed(provider)}

    names = [name for name in load_spec(provider).params if name in USES]
    assert {f"params.{name}" for name in names} <= told
    assert len(names) >= len(load_spec(provider).params) - 2  # regex and grammar have no form that all share


async def test_contested_facts_are_named_first() -> None:
    found = await probed("cerebras")

    contested = [one.contested for one in found]
    assert contested == sorted(contested, reverse=True)
    assert {one.fact for one in found if one.contested} >= {"params.n", "params.logit_bias", "params.temperature.max"}


async def test_a_target_that_falls_silent_ends_the_probe() -> None:
    target = target_of(load_spec("vllm"))
    play, served = simulation(target), 0

    async def send(method: str, path: str, body: bytes) -> Seen:
        nonlocal served
        served += 1
        return await play(method, path, body) if served < 20 else Seen(0, {}, b"no connection")

    with pytest.raises(UnreachableError):
        await probe(target, send)

    assert served == 22


async def test_a_model_with_a_small_context_has_it_filled() -> None:
    found = {one.fact: one for one in await probed("local")}

    assert found["context.overflow"].verdict is Verdict.HOLDS
