"""Models that are no longer served are refused; those that soon will not be, or may not be, are remarked on."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from gateway.config.served import Served, check_served
from gateway.settings import ConfigError, Settings, load_settings
from tests.fakes.price_snapshot import GONE


def served(target: dict[str, Any], provider: dict[str, Any], today: str = "2026-11-30") -> Served:
    """What is said of a model with this one target, at a provider called ``p``."""
    tree: dict[str, Any] = {
        "providers": {"p": {"api_key": "k", **provider}},
        "models": {"m": {"targets": [{"provider": "p", **target}]}},
    }
    return check_served(Settings(**tree), date.fromisoformat(today))


def test_a_retired_model_is_refused_with_its_line_and_a_successor(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(
        "providers: {g: {type: groq, api_key: k}}\n"
        "models:\n"
        "  m:\n"
        "    targets:\n"
        "      - {provider: g, model: llama-3.3-70b-versatile}\n"
    )

    with pytest.raises(ConfigError) as caught:
        load_settings(path, environ={})

    [problem] = caught.value.problems
    assert (problem.line, problem.path) == (5, "models.m.targets[0].model")
    assert "retired g/llama-3.3-70b-versatile" in problem.message
    assert "in its place" in problem.message


def test_a_model_counts_as_retired_from_its_day_on() -> None:
    target, provider = {"model": "gpt-5"}, {"type": "openai"}

    assert not served(target, provider, "2026-12-10").findings
    [(path, of_key, message)] = served(target, provider, "2026-12-11").findings
    assert (path, of_key) == (("models", "m", "targets", 0, "model"), False)
    assert "2026-12-11" in message
    assert "in its place" in message


@pytest.mark.parametrize(
    ("today", "said"),
    [
        ("2026-11-10", "is deprecated and ends on 2026-12-11"),
        ("2026-11-11", "is retired on 2026-12-11"),
        ("2026-12-10", "is retired on 2026-12-11"),
    ],
)
def test_the_last_thirty_days_are_remarked_on_as_such(today: str, said: str) -> None:
    [note] = served({"model": "gpt-5"}, {"type": "openai"}, today).notes

    assert note.startswith("m: p/gpt-5 ")
    assert said in note


@pytest.mark.parametrize(
    ("target", "provider", "said"),
    [
        ({"model": "qwen/qwen3.8-27b"}, {"type": "groq"}, "a preview"),
        ({"model": "gemma-4-31b"}, {"type": "cerebras"}, "deprecated"),
        ({"model": "accounts/fireworks/models/gpt-oss-120b"}, {"type": "fireworks"}, "sources differ"),
    ],
)
def test_previews_deprecated_and_doubtful_models_start_with_a_remark(
    target: dict[str, Any], provider: dict[str, Any], said: str
) -> None:
    result = served(target, provider)

    assert result.findings == []
    assert [said in note for note in result.notes] == [True]


def test_at_an_address_of_ones_own_a_retired_model_is_only_remarked_on() -> None:
    provider = {"type": "groq", "base_url": "https://proxy.example/v1"}

    result = served({"model": "llama-3.3-70b-versatile"}, provider)

    assert result.findings == []
    assert len(result.notes) == 1


@pytest.mark.parametrize("address", ["https://api.together.ai/v1/", "https://api.together.xyz/v1"])
def test_the_providers_own_address_may_be_written_out(address: str) -> None:
    target = {"model": "meta-llama/Llama-3.3-70B-Instruct-Turbo"}

    assert len(served(target, {"type": "together", "base_url": address}).findings) == 1


@pytest.mark.usefixtures("price_snapshot")
def test_what_only_other_peoples_lists_call_retired_is_not_refused() -> None:
    result = served({"model": GONE.id}, {"type": "openai"}, "2036-01-01")

    assert result.findings == []
    assert ["litellm" in note for note in result.notes] == [True]


def test_of_fine_tunes_the_base_is_what_has_to_be_served() -> None:
    target = {"model": "{adapter}", "base": "llama-3.3-70b-versatile"}

    [(path, _, _)] = served(target, {"type": "groq"}).findings

    assert path[-1] == "base"


@pytest.mark.parametrize(
    ("target", "provider"),
    [
        ({"model": "openai/gpt-oss-120b"}, {"type": "groq"}),
        ({"model": "made-up"}, {"type": "groq"}),
        ({"model": "gpt-5"}, {"type": "vllm", "base_url": "http://127.0.0.1:1/v1"}),
        ({}, {"type": "local", "api_key": None}),
    ],
)
def test_models_in_production_and_models_nobody_knows_are_passed_over(
    target: dict[str, Any], provider: dict[str, Any]
) -> None:
    assert served(target, provider) == Served([], [])
