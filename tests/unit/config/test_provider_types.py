"""Each provider type is accepted as ``type:``, at its own address where it has one, and its facts can be overridden."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters.registry import load_spec, provider_types
from adapters.vocabulary import PartSupport
from gateway.catalog import Catalog
from gateway.config.provider_settings import BRIDGE_TYPE
from gateway.settings import ConfigError, Settings, load_settings

REMOTE = [name for name in provider_types() if name != "local"]
WITHOUT_ADDRESS = [name for name in REMOTE if load_spec(name).transport.base_url is None and name != BRIDGE_TYPE]
FILE = """\
version: 1
auth: {{mode: open}}
providers:
  p: {{type: {type}{more}}}
models:
  m: {{targets: [{{provider: p, model: some-model{target}}}]}}
"""


def _settings(tmp_path: Path, kind: str, more: str = "", target: str = "") -> Settings:
    path = tmp_path / "config.yaml"
    path.write_text(FILE.format(type=kind, more=more, target=target), encoding="utf-8")
    return load_settings(path, environ={})


@pytest.mark.parametrize("kind", REMOTE)
def test_every_type_serves_a_model(tmp_path: Path, kind: str) -> None:
    spec = load_spec(kind)
    address = "" if spec.transport.base_url else ", base_url: http://127.0.0.1:9/v1"
    key = ", api_key: not-a-real-key" if spec.hosted else ""

    model = Catalog.build(_settings(tmp_path, kind, address + key)).resolve("m")

    assert model is not None
    assert model.targets[0].spec is spec


@pytest.mark.parametrize("kind", WITHOUT_ADDRESS)
def test_a_type_without_an_address_of_its_own_asks_for_one(tmp_path: Path, kind: str) -> None:
    with pytest.raises(ConfigError, match=f"a provider of type {kind} has no address of its own"):
        _settings(tmp_path, kind)


def test_a_provider_and_a_target_may_each_change_what_the_file_says(tmp_path: Path) -> None:
    messages = "{single_system: true, content_parts: {image_url: bytes}}"
    ours = f", overrides: {{messages: {messages}, context: {{overflow: cuts_prompt}}}}"
    theirs = ", overrides: {messages: {content_parts: {image_url: absent}}, reasoning: {off: {think: false}}}"

    model = Catalog.build(_settings(tmp_path, "vllm", ours, theirs)).resolve("m")

    assert model is not None
    spec = model.targets[0].spec
    assert spec.messages.wants_single_system("some-model")
    assert spec.messages.content_parts["image_url"] is PartSupport.ABSENT
    assert spec.context.count_first
    assert spec.reasoning.switch_for("some-model")["think"] is False


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ("{messages: {content_parts: {image_url: byte}}}", "'byte' is not allowed here. Did you mean 'bytes'?"),
        ("{params: {seed: {suport: native}}}", "'suport' is not a known key here. Did you mean 'support'?"),
        ("{conflicts: [{when: [tolls], result: 400}]}", "'tolls' is not a parameter. Did you mean 'tools'?"),
        ("{finish_reason: {values: [eso]}}", "OpenAI has no 'eso'"),
        ("{errors: {envelope: flatt}}", "Did you mean 'flat'?"),
    ],
)
def test_overrides_are_as_strict_as_a_file_and_name_the_line(tmp_path: Path, overrides: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _settings(tmp_path, "vllm", f", overrides: {overrides}")

    assert "config.yaml:4:" in str(caught.value)
    assert message in str(caught.value)
