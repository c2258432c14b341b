"""Values that a provider spells otherwise, or takes fewer of: efforts, tiers, stops."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.errors import ProviderError
from tests.fakes.prepared import adapter_of, sent_by

# Words


@pytest.mark.parametrize(("given", "sent"), [("default", "on_demand"), ("priority", "performance"), ("flex", "flex")])
def test_a_word_becomes_the_providers(given: str, sent: str) -> None:
    got = sent_by(adapter_of("groq"), service_tier=given)
    assert got.body["service_tier"] == sent
    assert got.told == ([] if given == sent else ["service_tier=mapped"])


def test_a_word_the_provider_has_none_for_is_left_out() -> None:
    sent = sent_by(adapter_of("groq"), service_tier="scale")
    assert ("service_tier" in sent.body, sent.told) == (False, ["service_tier=dropped"])


@pytest.mark.parametrize(
    ("provider", "model", "given", "sent"),
    [
        ("groq", "openai/gpt-oss-120b", "minimal", "low"),
        ("groq", "openai/gpt-oss-120b", "xhigh", "high"),
        ("groq", "openai/gpt-oss-120b", "max", "high"),
        ("groq", "openai/gpt-oss-120b", "none", "low"),
        ("groq", "openai/gpt-oss-120b", "medium", "medium"),
        ("groq", "qwen/qwen3.8-27b", "none", "none"),
        ("groq", "qwen/qwen3-32b", "high", "default"),
        ("cerebras", "kimi-k3", "medium", "low"),
        ("cerebras", "kimi-k3", "xhigh", "high"),
        ("fireworks", "accounts/fireworks/models/gpt-oss-20b", "none", "low"),
        ("trtllm", "m", "minimal", "low"),
    ],
)
def test_a_reasoning_effort_becomes_the_nearest_the_model_knows(
    provider: str, model: str, given: str, sent: str
) -> None:
    got = sent_by(adapter_of(provider, model), reasoning_effort=given)
    assert got.body["reasoning_effort"] == sent
    assert ("reasoning_effort=mapped" in got.told) == (given != sent)


def test_no_effort_switches_thinking_off_where_there_is_a_switch() -> None:
    sent = sent_by(adapter_of("mlx_lm"), reasoning_effort="none", chat_template_kwargs={"x": 1})
    assert sent.body["chat_template_kwargs"] == {"x": 1, "enable_thinking": False}
    assert "reasoning_effort" not in sent.body
    assert "reasoning_effort=mapped" in sent.told


@pytest.mark.parametrize("other", [{"logprobs": True}, {"tools": [{"type": "function", "function": {"name": "f"}}]}])
def test_what_does_not_go_with_an_effort_sees_the_one_that_is_sent(other: dict[str, Any]) -> None:
    """This model always thinks, so that ``none`` is sent as the least it can do."""
    always, never = adapter_of("openai", "gpt-6-astra"), adapter_of("openai", "gpt-6-sol")
    with pytest.raises(ProviderError, match="go together"):
        sent_by(always, reasoning_effort="none", **other)
    assert sent_by(never, reasoning_effort="none", **other).body["reasoning_effort"] == "none"


def test_a_word_outside_the_list_is_left_out() -> None:
    assert sent_by(adapter_of("cerebras"), max_tokens=9, service_tier="scale").told == ["service_tier=dropped"]
    assert sent_by(adapter_of("cerebras"), max_tokens=9, service_tier="flex").told == []


# Stops


def test_what_a_target_cannot_stop_at_is_watched_for() -> None:
    sent = sent_by(adapter_of("groq"), stop=["a", "b", "c", "d", "e", "f"])
    assert (sent.body["stop"], sent.told) == (["a", "b", "c", "d"], ["stop=emulated"])
    assert sent.needs is not None
    assert sent.needs.stops == ("e", "f")
    assert not sent.lossy


def test_stops_that_fit_go_as_they_came() -> None:
    sent = sent_by(adapter_of("groq"), stop=["a", "b"])
    assert (sent.body["stop"], sent.told, sent.needs) == (["a", "b"], [], None)
    assert sent_by(adapter_of("groq"), stop="a").body["stop"] == "a"


def test_one_stop_becomes_a_list_where_only_lists_are_known() -> None:
    sent = sent_by(adapter_of("together"), stop="END")
    assert (sent.body["stop"], sent.told) == (["END"], ["stop=rewritten"])
    assert len(sent_by(adapter_of("together"), stop=[str(n) for n in range(9)]).body["stop"]) == 9


def test_a_target_without_stops_has_all_of_them_watched_for() -> None:
    sent = sent_by(adapter_of("openai_compatible", params={"stop": {"support": "rejected"}}), stop=["a", "", "a", "b"])
    assert "stop" not in sent.body
    assert sent.needs is not None
    assert sent.needs.stops == ("a", "b")


@pytest.mark.parametrize("nothing", [[], "", None, [""]])
def test_no_stop_is_no_stop(nothing: Any) -> None:
    sent = sent_by(adapter_of("groq"), stop=nothing)
    assert ("stop" in sent.body, sent.told, sent.needs) == (False, [], None)
