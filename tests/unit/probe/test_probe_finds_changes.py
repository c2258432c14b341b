"""Of a provider that differs from its file in one fact, the probe names that fact, no other, and mends the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from adapters.registry import load_spec
from gateway.probe.overrides import overrides_of
from tests.unit.probe.playing import drift, probed

Change = tuple[str, dict[str, Any], str]


def _conflicts(provider: str) -> list[dict[str, Any]]:
    return [one.model_dump(mode="json", exclude_unset=True) for one in load_spec(provider).conflicts]


def changes() -> list[Change]:
    """Provider, changed facts, and the name of the fact that is to be found."""
    listed = yaml.safe_load(Path(__file__).with_name("changes.yaml").read_text())
    one_less = {"conflicts": _conflicts("groq")[1:]}
    one_more = {
        "conflicts": [*_conflicts("fireworks"), {"when": ["stream", "response_format.json_schema"], "result": 400}]
    }
    return [
        *((one["provider"], one["real"], one["fact"]) for one in listed),
        ("groq", one_less, "conflicts: tools + response_format.json_object"),
        ("fireworks", one_more, "conflicts: stream + response_format.json_schema"),
    ]


CHANGES: Final = changes()


@pytest.mark.parametrize(("provider", "change", "fact"), CHANGES, ids=[f"{name}-{fact}" for name, _, fact in CHANGES])
async def test_a_changed_fact_is_the_only_thing_found(provider: str, change: dict[str, Any], fact: str) -> None:
    found = drift(await probed(provider, real=change))

    assert [*found] == [fact]


@pytest.mark.parametrize(("provider", "change", "fact"), CHANGES, ids=[f"{name}-{fact}" for name, _, fact in CHANGES])
async def test_with_the_override_it_proposes_nothing_differs_any_more(
    provider: str, change: dict[str, Any], fact: str
) -> None:
    override = drift(await probed(provider, real=change))[fact].override

    again = drift(await probed(provider, real=change, known=override))

    assert again == {}


async def test_several_changes_are_put_together_in_one_block() -> None:
    real = {
        "params": {"n": {"support": "native"}, "seed": {"support": "rejected", "status": 400}},
        "conflicts": _conflicts("groq")[3:],
        "messages": {"name": {"support": "native"}},
    }
    found = await probed("groq", real=real)

    again = await probed("groq", real=real, known=overrides_of(load_spec("groq"), found))

    assert len(drift(found)) == 6
    assert drift(again) == {}
