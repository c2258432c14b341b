"""What the page about simulators says is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from adapters.registry import load_spec, provider_types
from adapters.simulator.faults import Fault, FaultKind
from adapters.types import Operation
from tests.unit.adapters.simulator.asking import ask, simulator

PAGE = (Path(__file__).resolve().parents[4] / "docs" / "simulators.md").read_text(encoding="utf-8")


def test_the_page_lists_every_fault_by_a_spelling_that_is_understood() -> None:
    table = PAGE[PAGE.index("| fault |") : PAGE.index("## Changed facts")]
    named = re.findall(r"`([a-z_]+=?[\w.]*)`", table.replace("`retry-after: 7`", "").replace("`errors`", ""))

    assert {Fault.parse(text.replace("NAME", "validation")).kind for text in named} == set(FaultKind)


def test_the_changed_facts_of_the_page_are_facts() -> None:
    found = re.search(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None

    assert ask(simulator("groq", yaml.safe_load(found[1])), stop=list("abcdefgh"), logit_bias={"1": 1}).status == 200


@pytest.mark.parametrize("provider", [n for n in provider_types() if load_spec(n).endpoints[Operation.CHAT].available])
def test_every_type_that_chats_can_be_played(provider: str) -> None:
    assert ask(simulator(provider, models=("m",)), model="m").status == 200
