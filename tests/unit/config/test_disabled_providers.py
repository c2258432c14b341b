"""An empty key switches a provider off, with everything that needs it, and says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.settings import ConfigError, Settings, load_settings

TEXT = """\
providers:
  groq: {type: groq, api_key: "${GROQ_API_KEY:-}"}
  fireworks: {type: fireworks, api_keys: ["${A:-}", "${B:-}"]}
  v: {type: vllm}
models:
  both:
    targets:
      - {provider: groq, model: x}
      - {provider: v, model: y}
  hosted:
    targets: [{provider: groq, model: x}, {provider: fireworks, model: z}]
aliases: {h: hosted, b: both}
"""


def _load(tmp_path: Path, text: str, **environ: str) -> Settings:
    path = tmp_path / "c.yaml"
    path.write_text(text, encoding="utf-8")
    return load_settings(path, environ=environ)


def test_targets_models_and_aliases_of_a_disabled_provider_vanish_with_a_note(tmp_path: Path) -> None:
    settings = _load(tmp_path, TEXT)

    assert list(settings.providers) == ["v"]
    assert [target.provider for target in settings.models["both"].targets] == ["v"]
    assert list(settings.models) == ["both"]
    assert settings.aliases == {"b": "both"}
    assert settings.notes == (
        "provider groq is disabled: its api_key is empty",
        "provider fireworks is disabled: its api_key is empty",
        "model hosted is left out: all its providers are disabled",
        "alias h is left out with model hosted",
    )


def test_a_provider_with_one_key_left_stays(tmp_path: Path) -> None:
    settings = _load(tmp_path, TEXT, B="second")

    assert settings.providers["fireworks"].keys == ("second",)
    assert [target.provider for target in settings.models["hosted"].targets] == ["fireworks"]


def test_places_in_errors_count_what_was_taken_out(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        _load(tmp_path, TEXT.replace("model: y", "modl: y"))

    assert "c.yaml:9:23  models.both.targets[1].modl" in caught.value.render()


def test_it_is_an_error_when_no_model_is_left(tmp_path: Path) -> None:
    text = 'providers: {g: {type: groq, api_key: "${G:-}"}}\nmodels: {m: {targets: [{provider: g, model: x}]}}\n'
    with pytest.raises(ConfigError) as caught:
        _load(tmp_path, text)

    assert "c.yaml:2:9  models\n  no model is left, because every provider they need is disabled\n1 error" in str(
        caught.value
    )
