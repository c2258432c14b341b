"""The keys of a bridge in the configuration: which belong to it alone, which do not apply, and what is masked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.catalog import Catalog
from gateway.settings import ConfigError, Settings, load_settings

FILE = """\
version: 1
providers:
  p: {{type: {type}{more}}}
models:
  m: {{targets: [{{provider: p, model: anthropic/claude}}]}}
"""


def settings(folder: Path, more: str = "", kind: str = "litellm_bridge") -> Settings:
    path = folder / "config.yaml"
    path.write_text(FILE.format(type=kind, more=more))
    return load_settings(path, environ={})


def test_a_bridge_needs_neither_an_address_nor_a_key(tmp_path: Path) -> None:
    model = Catalog.build(settings(tmp_path)).resolve("m")

    assert model is not None
    assert model.targets[0].name == "p/anthropic/claude"
    assert model.targets[0].price is None


@pytest.mark.parametrize("key", ["unix_socket: /s", "ca_file: /c", "client_cert: /c", "slots: 2"])
def test_what_does_not_apply_to_a_bridge_is_refused(tmp_path: Path, key: str) -> None:
    with pytest.raises(ConfigError, match="appl"):
        settings(tmp_path, f", {key}")


@pytest.mark.parametrize("key", ["options: {a: b}", "env: {A: b}", "memory: 1GiB"])
def test_what_belongs_to_bridges_is_refused_elsewhere(tmp_path: Path, key: str) -> None:
    with pytest.raises(ConfigError, match="applies to 'type: litellm_bridge' only"):
        settings(tmp_path, f", base_url: http://h/v1, {key}", "vllm")


def test_options_and_variables_are_masked_where_settings_are_shown(tmp_path: Path) -> None:
    found = settings(tmp_path, ", options: {azure_ad_token: s3cret, ssl_verify: false}, env: {K: s3cret}")

    assert "s3cret" not in json.dumps(found.model_dump(mode="json"))
    assert found.providers["p"].options["ssl_verify"] is False
