"""Probes of providers that are played in this process, one of their facts changed or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adapters.registry import load_spec
from adapters.simulator.engine import Simulator
from adapters.simulator.options import Options
from adapters.spec import ProviderSpec
from adapters.target import Target
from gateway.probe.battery import probe, simulation
from gateway.probe.finding import Finding, Verdict


def target_of(spec: ProviderSpec, model: str | None = None) -> Target:
    """A target at the provider, with the first model it serves unless one is given."""
    name = model or Simulator(spec).models.names()[0]
    known = next((one for one in spec.models if one.id == name), None)
    window = known.context_window if known is not None else None
    most = known.max_output_tokens if known is not None else None
    return Target("p/m", "p", name, spec, context_window=window, max_output_tokens=most)


async def probed(
    provider: str,
    real: Mapping[str, Any] | None = None,
    known: Mapping[str, Any] | None = None,
    model: str | None = None,
    **options: Any,
) -> Sequence[Finding]:
    """The findings of a probe that believes the file with *known* over it; the provider is the file with *real*."""
    spec = load_spec(provider)
    target = target_of(spec.with_overrides(known or {}), model)
    played = Simulator(spec.with_overrides(real or {}), Options(models=(target.model,), **options))
    return await probe(target, simulation(target, played))


def drift(findings: Sequence[Finding]) -> dict[str, Finding]:
    """The findings where file and provider differ, by their fact."""
    return {one.fact: one for one in findings if one.verdict is Verdict.DIFFERS}
