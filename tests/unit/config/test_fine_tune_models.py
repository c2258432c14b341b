"""Models for many fine-tunes: what the catalogue makes of them, and what the configuration may not say."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from gateway.catalog import Catalog, ptoken
from gateway.settings import ConfigError, load_settings

TEXT = """\
providers:
  v: {type: vllm}
  f: {type: fireworks, api_key: k}
models:
  support/*:
    targets: [{provider: v, model: "{adapter}", base: qwen, context_window: 4096}]
    timeouts: {total: 60s}
  support/eu/*:
    targets: [{provider: f, model: "accounts/us/models/{adapter}", base: accounts/fireworks/models/gpt-oss-20b}]
  support/fixed: {targets: [{provider: v, model: fixed}]}
aliases: {acme: support/acme, "old-*": support/zen, "support/x*": support/fixed}
expose_provider_models: true
"""


def _load(tmp_path: Path, text: str) -> Catalog:
    path = tmp_path / "c.yaml"
    path.write_text(text, encoding="utf-8")
    return Catalog.build(load_settings(path, environ={}))


@pytest.mark.parametrize(
    ("name", "model", "pattern"),
    [
        ("support/acme", "support/acme", "support/*"),
        ("support/eu/acme", "support/eu/acme", "support/eu/*"),
        ("support/fixed", "support/fixed", ""),
        ("acme", "support/acme", "support/*"),
        ("old-7", "support/zen", "support/*"),
        ("support/xy", "support/xy", "support/*"),
    ],
)
def test_a_name_is_one_of_many_after_all_others(tmp_path: Path, name: str, model: str, pattern: str) -> None:
    catalog = _load(tmp_path, TEXT)

    for _ in range(2):  # the second time from memory
        found = catalog.resolve(name)
        assert found is not None
        assert (found.id, found.pattern) == (model, pattern)


@pytest.mark.parametrize("name", ["support/*", "support/", "support", "support/a/b", "support/..", "other/acme"])
def test_a_pattern_is_no_name_and_not_everything_fits_it(tmp_path: Path, name: str) -> None:
    assert _load(tmp_path, TEXT).resolve(name) is None


def test_a_fine_tune_shares_all_but_its_name_with_its_base(tmp_path: Path) -> None:
    catalog = _load(tmp_path, TEXT)
    acme, zen = catalog.resolve("support/acme"), catalog.resolve("support/zen")
    eu = catalog.resolve("support/eu/acme")

    assert acme is not None
    assert zen is not None
    assert eu is not None
    assert acme.targets is zen.targets, "or metrics would have a series for each"
    assert (acme.total_seconds, acme.targets[0].name, acme.targets[0].context_window) == (60.0, "v/qwen", 4096)
    price = eu.targets[0].price
    assert price is not None
    assert price.input_ptoken == ptoken(Decimal("0.07")), "the base's"
    assert "v/qwen" not in catalog.exposed


@pytest.mark.parametrize(
    ("name", "target", "place", "message"),
    [
        ("a/*/*", "provider: v, model: '{adapter}', base: b", "", "has more than one '*'"),
        ("a*", "provider: v, model: '{adapter}', base: b", "", "is named 'something/*'"),
        ("/*", "provider: v, model: '{adapter}', base: b", "", "is named 'something/*'"),
        ("a/*", "provider: v, model: '{adapter}'", ".targets[0]", "'base' is missing"),
        ("a/*", "provider: v, model: m, base: b", ".targets[0].model", "has to hold '{adapter}'"),
        ("a", "provider: v, model: '{adapter}'", ".targets[0].model", "'a' has none"),
        ("a", "provider: v, model: m, base: b", ".targets[0].base", "'base' belongs to models"),
        ("a", "provider: v, model: m, adapters: {x: y}", ".targets[0].adapters", "'adapters' belongs"),
        ("a/*", "provider: l", ".targets[0].provider", "no adapters with names"),
        ("a", "provider: l, base: b", ".targets[0].base", "its 'lora' names its adapters"),
        ("a/*", "provider: c, base: b, model: x", ".targets[0]", "'adapters' is missing"),
        ("a/*", "provider: c, base: b, adapters: {x: y}", ".targets[0].adapters.x", "a number is"),
        ("a/*", "provider: v, base: b, adapters: {x: 1}", ".targets[0].adapters.x", "a name is"),
        ("a/*", "provider: v, base: b, adapters: {../x: y}", ".targets[0].adapters.../x", "cannot be"),
        ("a/*", "provider: g, base: b, model: '{adapter}'", ".targets[0].provider", "is not known"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_told(tmp_path: Path, name: str, target: str, place: str, message: str) -> None:
    providers = "{v: {type: vllm}, c: {type: llama_cpp_server}, l: {type: local}, g: {type: groq, api_key: k}}"
    with pytest.raises(ConfigError) as caught:
        _load(tmp_path, f"providers: {providers}\nmodels: {{'{name}': {{targets: [{{{target}}}]}}}}\n")

    report = caught.value.render()
    assert len(caught.value.problems) == 1, report
    assert f"  models.{name}{place}\n" in report
    assert message in report


@pytest.mark.parametrize(
    ("alias", "message"),
    [("support/*", "stands for many models"), ("support/../x", "is not a model"), ("elsewhere/x", "is not a model")],
)
def test_an_alias_has_to_mean_one_model(tmp_path: Path, alias: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _load(tmp_path, TEXT.replace("acme: support/acme", f"acme: {alias}"))

    assert message in caught.value.render()


def test_a_way_that_the_file_does_not_know_can_be_told(tmp_path: Path) -> None:
    model = "a/*: {targets: [{provider: g, base: b, model: '{adapter}', overrides: {lora: {model: '{adapter}'}}}]}"

    assert _load(tmp_path, f"providers: {{g: {{type: groq, api_key: k}}}}\nmodels: {{{model}}}\n").resolve("a/x")
