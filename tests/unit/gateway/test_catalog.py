"""What a name in `model` means, and what the catalogue knows of the targets behind it."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from adapters.spec import Patch, Support
from adapters.types import Price
from gateway.catalog import Catalog, ptoken
from gateway.settings import load_settings

TEXT = """\
providers:
  groq: {type: groq, api_key: k}
  v: {type: vllm, overrides: {params: {stop: {support: limited, max_items: 16}}}}
  local: {type: local, slots: 4, context: 2048}
models:
  gpt-oss-120b:
    targets:
      - {provider: groq, model: openai/gpt-oss-120b}
      - {provider: v, model: oss, context_window: 4096, traits: {region: eu},
         price: {input: 0.15, output: 0.6}, overrides: {params: {n: {support: rejected}}}}
    timeouts: {total: 60s, stall: 5s}
    retries: {attempts: 2}
  small: {targets: [{provider: local}]}
aliases: {gpt-4o: gpt-oss-120b, "gpt-*": small, "gpt-4*": gpt-oss-120b, "claude-?": small}
expose_provider_models: EXPOSE
"""


def _catalog(tmp_path: Path, *, expose: bool = False) -> Catalog:
    path = tmp_path / "c.yaml"
    path.write_text(TEXT.replace("EXPOSE", str(expose).lower()), encoding="utf-8")
    return Catalog.build(load_settings(path, environ={}))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gpt-oss-120b", "gpt-oss-120b"),
        ("small", "small"),
        ("gpt-4o", "gpt-oss-120b"),
        ("gpt-4.1", "gpt-oss-120b"),
        ("gpt-5", "small"),
        ("claude-x", "small"),
        ("claude-xy", None),
        ("GPT-4o", None),
        ("", None),
        ("groq/openai/gpt-oss-120b", None),
        ("gpt-5\nx", "small"),
    ],
)
def test_an_id_then_an_alias_then_the_longest_pattern(tmp_path: Path, name: str, expected: str | None) -> None:
    catalog = _catalog(tmp_path)

    for _ in range(2):  # the second time from memory
        model = catalog.resolve(name)
        assert (model.id if model else None) == expected


def test_provider_models_are_names_when_exposed_and_only_known_ones(tmp_path: Path) -> None:
    catalog = _catalog(tmp_path, expose=True)
    configured, listed = catalog.resolve("v/oss"), catalog.resolve("groq/openai/gpt-oss-20b")

    assert configured is not None
    assert listed is not None
    assert [target.name for target in configured.targets] == ["v/oss"]
    assert (configured.total_seconds, configured.attempts) == (60.0, 2)
    assert listed.targets[0].model == "openai/gpt-oss-20b"
    assert catalog.resolve("groq/made-up") is None
    assert list(catalog.models) == ["gpt-oss-120b", "small"]


def test_what_a_model_lacks_is_emulated_unless_the_operator_knows_better(tmp_path: Path) -> None:
    told = TEXT.replace(
        "{type: local, slots: 4", "{type: local, overrides: {params: {tools: {support: native}}}, slots: 4"
    )
    path = tmp_path / "told.yaml"
    path.write_text(told.replace("EXPOSE", "false"), encoding="utf-8")

    as_shipped = _catalog(tmp_path).models["small"].targets[0].spec.params
    overridden = Catalog.build(load_settings(path, environ={})).models["small"].targets[0].spec.params

    assert (as_shipped["tools"].support, as_shipped["tools"].patch) == (Support.REJECTED, Patch.EMULATE_TOOLS)
    assert as_shipped["n"].max == 4
    assert (overridden["tools"].support, overridden["tool_choice"].support) == (Support.NATIVE, Support.REJECTED)


def test_a_target_carries_what_the_provider_file_and_the_configuration_say(tmp_path: Path) -> None:
    groq, own = _catalog(tmp_path).models["gpt-oss-120b"].targets

    assert (groq.name, groq.provider, groq.model) == ("groq/openai/gpt-oss-120b", "groq", "openai/gpt-oss-120b")
    assert groq.price == Price(150_000, 600_000, 75_000)
    assert (groq.context_window, groq.max_output_tokens) == (131072, 65536)
    assert own.price == Price(150_000, 600_000, None)
    assert (own.context_window, own.traits) == (4096, {"region": "eu"})
    assert own.spec.params["stop"].max_items == 16, "the provider's override"
    assert own.spec.params["n"].support is Support.REJECTED, "the target's override"


def test_the_local_engine_is_free_and_bounded_by_its_slots(tmp_path: Path) -> None:
    (target,) = _catalog(tmp_path).models["small"].targets

    assert target.price == Price(0, 0, 0)
    assert target.context_window == 2048
    assert target.spec.params["n"].max == 4


def test_the_longest_time_of_a_request_is_the_servers_where_its_model_says_none(tmp_path: Path) -> None:
    path = tmp_path / "told.yaml"
    path.write_text(f"server: {{request_timeout: 7s}}\n{TEXT.replace('EXPOSE', 'true')}", encoding="utf-8")
    catalog = Catalog.build(load_settings(path, environ={}))

    own, silent = catalog.models["gpt-oss-120b"], catalog.models["small"]
    assert (own.total_seconds, silent.total_seconds) == (60.0, 7.0)
    exposed = {name: model.total_seconds for name, model in catalog.exposed.items()}
    assert (exposed["v/oss"], exposed["groq/openai/gpt-oss-20b"]) == (60.0, 7.0)


def test_the_clocks_have_defaults_that_know_the_local_engine_is_slow(tmp_path: Path) -> None:
    models = _catalog(tmp_path).models

    assert (models["gpt-oss-120b"].total_seconds, models["gpt-oss-120b"].stall_seconds) == (60.0, 5.0)
    assert models["gpt-oss-120b"].first_event_seconds == 30.0
    assert models["small"].first_event_seconds == 120.0
    assert models["small"].total_seconds == 600.0


def test_the_nearest_names_are_told(tmp_path: Path) -> None:
    catalog = _catalog(tmp_path)

    assert catalog.nearest("gpt-oss-12b")[0] == "gpt-oss-120b"
    assert catalog.nearest("Smal") == ["small"]
    assert catalog.nearest("x" * 100_000) == []


def test_names_from_clients_are_not_remembered_without_end(tmp_path: Path) -> None:
    catalog = _catalog(tmp_path)
    for number in range(3000):
        catalog.resolve(f"nothing-{number}")

    assert len(catalog._matched) <= 1024
    assert catalog.resolve("gpt-9") is catalog.models["small"]


@pytest.mark.parametrize(
    ("usd", "expected"), [("0.15", 150_000), ("0", 0), ("3", 3_000_000), ("0.0375", 37_500), ("0.006", 6_000)]
)
def test_a_price_in_usd_per_million_becomes_pico_usd_a_token(usd: str, expected: int) -> None:
    assert ptoken(Decimal(usd)) == expected
