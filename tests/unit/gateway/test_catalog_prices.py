"""Where a target's price comes from: the configuration, then the provider's file, then the dated snapshot."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters.catalogue.snapshot import Snapshot
from adapters.pricing import cost_nusd
from adapters.target import Target
from adapters.types import Price, Usage
from gateway.catalog import Catalog
from gateway.settings import load_settings
from tests.fakes.price_snapshot import LISTED

PROVIDERS = """\
providers:
  groq: {type: groq, api_key: k}
  together: {type: together, api_key: k}
  gpu: {type: vllm, base_url: "http://127.0.0.1:1/v1"}
  local: {type: local}
"""


def target_of(tmp_path: Path, target: str) -> Target:
    path = tmp_path / "c.yaml"
    path.write_text(f"{PROVIDERS}models: {{m: {{targets: [{target}]}}}}\n")
    return Catalog.build(load_settings(path, environ={})).models["m"].targets[0]


def test_the_configuration_comes_first(tmp_path: Path) -> None:
    target = target_of(tmp_path, "{provider: groq, model: openai/gpt-oss-120b, price: {input: 9, output: 10}}")

    assert (target.price, target.price_from) == (Price(9_000_000, 10_000_000), "configuration")


def test_then_the_providers_file(tmp_path: Path) -> None:
    target = target_of(tmp_path, "{provider: groq, model: openai/gpt-oss-120b}")

    assert target.price == Price(150_000, 600_000, 75_000)
    assert target.price_from.startswith("groq.yaml (")


def test_then_the_snapshot_with_its_date(tmp_path: Path, price_snapshot: Snapshot) -> None:
    target = target_of(tmp_path, f"{{provider: together, model: {LISTED.id}}}")

    assert target.price == Price(1_200_000, 3_600_000)
    assert target.price_from == f"litellm ({price_snapshot.as_of})"
    assert target.context_window == LISTED.context_window


@pytest.mark.usefixtures("price_snapshot")
def test_a_limit_of_other_peoples_lists_never_shortens_an_answer(tmp_path: Path) -> None:
    target = target_of(tmp_path, f"{{provider: together, model: {LISTED.id}}}")

    assert target.record is not None
    assert target.record.max_output_tokens is not None
    assert target.max_output_tokens is None


@pytest.mark.parametrize("target", ["{provider: groq, model: made-up}", "{provider: gpu, model: gpt-4o}"])
def test_what_nobody_knows_stays_unknown(tmp_path: Path, target: str) -> None:
    found = target_of(tmp_path, target)

    assert (found.price, found.price_from, found.record) == (None, "", None)


def test_what_runs_here_costs_nothing(tmp_path: Path) -> None:
    assert target_of(tmp_path, "{provider: local}").price == Price(0, 0, 0)


@pytest.mark.parametrize(
    "target",
    [
        "{provider: groq, model: openai/gpt-oss-120b}",
        "{provider: groq, model: unheard-of, price: {input: 1, output: 2}}",
        "{provider: gpu, model: m}",
        "{provider: local}",
    ],
)
def test_the_snapshot_is_read_only_where_a_price_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    def read() -> Snapshot:
        raise AssertionError("it was read")

    monkeypatch.setattr("adapters.catalogue.merged.shipped_snapshot", read)

    target_of(tmp_path, target)


def test_a_known_price_comes_to_a_known_cost(tmp_path: Path) -> None:
    """1,000 tokens in, of them 400 cached, and 500 out: 600 × 0.15 + 400 × 0.075 + 500 × 0.60 = 420 USD a million."""
    price = target_of(tmp_path, "{provider: groq, model: openai/gpt-oss-120b}").price

    assert cost_nusd(price, Usage(1000, 500, cached_tokens=400)) == 420_000
