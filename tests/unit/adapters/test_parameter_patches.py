"""Values of parameters: limits, bounds, words, stops, and what becomes of those a target lacks."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.adapter import Adapter
from adapters.draft import Unsupported
from adapters.errors import ProviderError
from adapters.patches import ADVISORY, CONTRACT
from adapters.types import FailureKind, Operation
from tests.fakes.prepared import adapter_of, one, sent_by

REJECTED = {"support": "rejected"}
OF_THEIR_OWN = {
    "stop", "n", "parallel_tool_calls", "stream", "max_tokens", "max_completion_tokens", "tool_choice",
    "response_format", "functions",
}  # fmt: skip
"""Parameters with ways of their own, told in tests of their own."""


def lacking(*names: str, patch: str | None = None) -> Adapter:
    entry = REJECTED | ({"patch": patch} if patch else {})
    return adapter_of("openai_compatible", params=dict.fromkeys(names, entry))


# Limits


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_a_limit_goes_under_the_only_name_that_is_known(name: str) -> None:
    assert sent_by(adapter_of("together"), **one(name, 64)).body["max_tokens"] == 64
    assert "max_completion_tokens" not in sent_by(adapter_of("together"), **one(name, 64)).body


@pytest.mark.parametrize("provider", ["openai_compatible", "fireworks", "groq", "together", "vllm", "mlx_lm"])
def test_of_two_limits_the_newer_one_is_sent_alone(provider: str) -> None:
    sent = sent_by(adapter_of(provider), max_tokens=100, max_completion_tokens=64)
    limits = [sent.body[name] for name in ("max_tokens", "max_completion_tokens") if name in sent.body]
    assert limits == [64]
    assert "max_tokens=dropped" in sent.told


def test_two_limits_that_agree_are_one() -> None:
    assert sent_by(adapter_of("groq"), max_tokens=64, max_completion_tokens=64).told == []


def test_a_limit_without_a_value_is_none() -> None:
    sent = sent_by(adapter_of("fireworks"), max_tokens=100, max_completion_tokens=None)
    assert sent.body["max_tokens"] == 100
    assert "max_completion_tokens" not in sent.body


def test_an_old_limit_becomes_the_new_one_where_that_alone_is_known() -> None:
    renamed = {"max_tokens": {"support": "renamed", "to": "max_completion_tokens"}}
    sent = sent_by(adapter_of("openai_compatible", params=renamed), max_tokens=5)
    assert (sent.body["max_completion_tokens"], sent.told) == (5, ["max_tokens=renamed"])


def test_a_text_completion_has_the_old_limit_alone() -> None:
    renamed = {"max_tokens": {"support": "renamed", "to": "max_completion_tokens"}}
    sent = sent_by(adapter_of("openai_compatible", params=renamed), Operation.COMPLETIONS, max_tokens=5)
    assert (sent.body["max_tokens"], sent.told) == (5, [])


def test_a_limit_above_the_targets_is_lowered_and_told() -> None:
    sent = sent_by(adapter_of("groq", most=1000), max_tokens=4000)
    assert (sent.body["max_tokens"], sent.told, sent.lossy) == (1000, ["max_tokens=clamped"], True)
    assert sent_by(adapter_of("groq", most=1000), max_tokens=1000).told == []


def test_a_limit_above_the_targets_is_refused_where_nothing_may_change() -> None:
    with pytest.raises(ProviderError) as refusal:
        sent_by(adapter_of("groq", most=1000), unsupported=Unsupported.REJECT, max_tokens=4000)
    assert (refusal.value.kind, refusal.value.param) == (FailureKind.UNSUPPORTED_PARAMETER, "max_tokens")


def test_a_target_that_does_worse_without_a_limit_always_gets_one() -> None:
    sent = sent_by(adapter_of("mlx_lm"))
    assert (sent.body["max_tokens"], sent.told) == (4096, ["max_tokens=clamped"])
    assert sent_by(adapter_of("cerebras", most=512)).body["max_completion_tokens"] == 512
    assert sent_by(adapter_of("cerebras"), max_tokens=9).body.get("max_completion_tokens") is None


# Bounds


@pytest.mark.parametrize(
    ("bounds", "given", "sent"),
    [
        ({"max": 1}, 1.5, 1.0),
        ({"max": 1}, 0.5, 0.5),
        ({"min": 0.1}, 0, 0.1),
        ({"min_exclusive": 0}, 0, 0.001),
        ({"max_exclusive": 2}, 2, 1.999),
    ],
)
def test_a_number_is_brought_within_the_bounds(bounds: dict[str, float], given: float, sent: float) -> None:
    target = adapter_of("openai_compatible", params={"temperature": {"support": "limited", **bounds}})
    got = sent_by(target, temperature=given)
    assert got.body["temperature"] == pytest.approx(sent)
    assert got.told == ([] if given == sent else ["temperature=clamped"])
    assert not got.lossy


def test_a_value_that_says_what_holds_anyway_is_left_out() -> None:
    sent = sent_by(adapter_of("tgi"), top_p=1)
    assert ("top_p" in sent.body, sent.told) == (False, [])
    assert sent_by(adapter_of("tgi"), top_p=0.9).body["top_p"] == 0.9


def test_a_sign_is_taken_off_where_none_is_known() -> None:
    sent = sent_by(adapter_of("tgi"), seed=-7)
    assert (sent.body["seed"], sent.told) == (7, ["seed=mapped"])


def test_a_target_with_fewer_alternatives_gives_less() -> None:
    sent = sent_by(adapter_of("fireworks"), logprobs=True, top_logprobs=9)
    assert (sent.body["top_logprobs"], sent.lossy) == (5, True)
    assert sent.told == ["top_logprobs=clamped"]


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
    sent = sent_by(lacking("stop"), stop=["a", "", "a", "b"])
    assert "stop" not in sent.body
    assert sent.needs is not None
    assert sent.needs.stops == ("a", "b")


@pytest.mark.parametrize("nothing", [[], "", None, [""]])
def test_no_stop_is_no_stop(nothing: Any) -> None:
    sent = sent_by(adapter_of("groq"), stop=nothing)
    assert ("stop" in sent.body, sent.told, sent.needs) == (False, [], None)


# What a target lacks


@pytest.mark.parametrize("name", sorted(CONTRACT - OF_THEIR_OWN))
@pytest.mark.parametrize("word", [Unsupported.AUTO, Unsupported.EMULATE, Unsupported.REJECT])
def test_what_an_application_relies_on_is_never_dropped_unasked(name: str, word: Unsupported) -> None:
    strict: dict[str, Any] = {"transport": {"unknown_body_fields": {"support": "rejected"}}}
    target = adapter_of("openai_compatible", params={name: REJECTED}, **strict) if name in KNOWN else strict_adapter()
    with pytest.raises(ProviderError) as refusal:
        sent_by(target, unsupported=word, **one(name, USES.get(name, "x")))
    assert (refusal.value.kind, refusal.value.param) == (FailureKind.UNSUPPORTED_PARAMETER, name)
    dropped = sent_by(target, unsupported=Unsupported.DROP, **one(name, USES.get(name, "x")))
    assert (name in dropped.body, dropped.told, dropped.lossy) == (False, [f"{name}=dropped"], True)


KNOWN = {"logprobs", "top_logprobs", "logit_bias", "tools", "modalities", "web_search_options"}
USES: dict[str, Any] = {
    "logprobs": True, "top_logprobs": 2, "logit_bias": {"5": 1}, "modalities": ["text", "audio"], "best_of": 3,
    "tools": [{"type": "function", "function": {"name": "f"}}], "web_search_options": {}, "echo": True,
    "dimensions": 5,
}  # fmt: skip


def strict_adapter() -> Adapter:
    return adapter_of("openai_compatible", transport={"unknown_body_fields": {"support": "rejected"}})


@pytest.mark.parametrize("name", ["temperature", "top_p"])
def test_the_value_that_holds_anyway_is_left_out_without_a_word(name: str) -> None:
    lacking: dict[str, Any] = {
        "params": {name: {"support": "rejected", "src": ["test"]}},
        "sources": {"test": "a test"},
    }
    sent = sent_by(adapter_of("openai_compatible", **lacking), **one(name, 1))
    assert (name in sent.body, sent.told) == (False, [])


@pytest.mark.parametrize(
    "name", ["temperature", "top_p", "seed", "frequency_penalty", "presence_penalty", "prediction"]
)
def test_what_steers_sampling_is_dropped_and_told_unless_nothing_may_change(name: str) -> None:
    sent = sent_by(lacking(name), **one(name, 0.5))
    assert (name in sent.body, sent.told, sent.lossy) == (False, [f"{name}=dropped"], False)
    with pytest.raises(ProviderError):
        sent_by(lacking(name), unsupported=Unsupported.REJECT, **one(name, 0.5))


@pytest.mark.parametrize("name", sorted(ADVISORY - {"prompt_cache_retention"}))
@pytest.mark.parametrize("word", list(Unsupported))
def test_what_changes_no_answer_is_dropped_and_told_whatever_is_asked(name: str, word: Unsupported) -> None:
    sent = sent_by(lacking(name), unsupported=word, **one(name, "x"))
    assert (name in sent.body, sent.told) == (False, [f"{name}=dropped"])


def test_a_file_may_insist_that_nothing_less_will_do() -> None:
    with pytest.raises(ProviderError):
        sent_by(lacking("seed", patch="error"), seed=1)


def test_a_parameter_without_effect_is_told_where_it_would_steer_the_answer() -> None:
    assert sent_by(adapter_of("vllm"), user="u", prediction={"type": "content", "content": "x"}).told == [
        "prediction=dropped"
    ]


def test_who_is_to_be_kept_safe_goes_as_the_user_where_that_is_free() -> None:
    sent = sent_by(adapter_of("groq"), safety_identifier="abc")
    assert (sent.body["user"], sent.told) == ("abc", ["safety_identifier=renamed"])
    both = sent_by(adapter_of("groq"), safety_identifier="abc", user="me")
    assert (both.body["user"], both.told) == ("me", ["safety_identifier=dropped"])


def test_a_search_of_the_web_becomes_the_providers_own_tool() -> None:
    sent = sent_by(adapter_of("groq", "openai/gpt-oss-120b"), web_search_options={"search_context_size": "low"})
    assert sent.body["tools"] == [{"type": "browser_search"}]
    assert sent.told == ["web_search_options=mapped"]
    form = {"type": "json_object"}
    with pytest.raises(ProviderError, match="web_search_options"):
        sent_by(adapter_of("groq", "openai/gpt-oss-120b"), web_search_options={}, response_format=form)
    with pytest.raises(ProviderError, match="web_search_options"):
        sent_by(adapter_of("groq", "qwen/qwen3.8-27b"), web_search_options={})


# Fields that are not known


def test_only_known_fields_go_to_a_provider_that_refuses_others() -> None:
    sent = sent_by(adapter_of("groq"), top_k=5, reasoning_format="parsed", temperature=0.3, foo=None)
    assert sorted(sent.body) == ["messages", "model", "reasoning_format", "temperature"]
    assert sent.told == ["top_k=dropped"]


@pytest.mark.parametrize("provider", ["cerebras", "together", "fireworks"])
def test_a_foreign_parameter_is_reported(provider: str) -> None:
    sent = sent_by(adapter_of(provider), include_reasoning=True, top_k=3)
    assert "include_reasoning=dropped" in sent.told
    assert ("top_k" in sent.body) == (provider in ("together", "fireworks"))


def test_a_foreign_parameter_is_reported_where_it_would_be_lost_without_a_word() -> None:
    sent = sent_by(adapter_of("vllm"), reasoning_format="parsed", include_reasoning=False)
    assert ("reasoning_format" in sent.body, sent.body["include_reasoning"]) == (False, False)
    assert sent.told == ["reasoning_format=dropped"]


def test_an_engines_own_parameters_reach_it() -> None:
    own: dict[str, Any] = {"top_k": 20, "chat_template_kwargs": {"enable_thinking": False}, "anything_new": 1}
    sent = sent_by(adapter_of("vllm"), **own)
    assert {name: sent.body[name] for name in own} == own
    assert sent.told == []


def test_a_provider_that_cuts_silently_is_asked_to_refuse_instead() -> None:
    assert sent_by(adapter_of("fireworks")).body["context_length_exceeded_behavior"] == "error"
    own = sent_by(adapter_of("fireworks"), context_length_exceeded_behavior="truncate")
    assert own.body["context_length_exceeded_behavior"] == "truncate"


def test_a_text_completion_goes_without_what_chat_alone_has() -> None:
    sent = sent_by(adapter_of("fireworks"), Operation.COMPLETIONS, metadata={"a": "b"}, top_k=3, echo=True)
    assert sorted(sent.body) == ["context_length_exceeded_behavior", "echo", "model", "prompt", "top_k"]
    assert sent.told == ["metadata=dropped"]
    assert "reasoning_effort" not in sent_by(adapter_of("trtllm"), Operation.COMPLETIONS).body
    assert sent_by(adapter_of("trtllm")).body["reasoning_effort"] == "medium"


@pytest.mark.parametrize(("name", "value"), [("prompt", ["a", "b"]), ("prompt", [[1], [2]]), ("suffix", "x")])
def test_what_text_completions_lack_is_refused(name: str, value: Any) -> None:
    with pytest.raises(ProviderError) as refusal:
        sent_by(adapter_of("triton"), Operation.COMPLETIONS, **one(name, value))
    assert (refusal.value.kind, refusal.value.param) == (FailureKind.UNSUPPORTED_PARAMETER, name)
    for single in ("a", ["a"], [1, 2], [[1, 2]]):
        assert sent_by(adapter_of("triton"), Operation.COMPLETIONS, prompt=single).body["prompt"] == single


def test_what_embeddings_lack_is_refused_but_for_an_encoding() -> None:
    lacks = {"path": "/embeddings", "support": "native", "lacks": ["dimensions", "encoding_format"]}
    target = adapter_of("openai_compatible", endpoints={"embeddings": lacks})
    sent = sent_by(target, Operation.EMBEDDINGS, input="a", encoding_format="base64")
    assert (sorted(sent.body), sent.told) == (["input", "model"], [])
    with pytest.raises(ProviderError, match="dimensions"):
        sent_by(target, Operation.EMBEDDINGS, input="a", dimensions=2)


def test_embeddings_keep_what_they_need() -> None:
    strict = adapter_of("fireworks")
    sent = sent_by(strict, Operation.EMBEDDINGS, input="a", dimensions=5, encoding_format="float", truncate=True)
    assert sorted(sent.body) == ["dimensions", "encoding_format", "input", "model"]
    assert sent.told == ["truncate=dropped"]


def test_alternatives_by_number_are_refused_where_there_are_none() -> None:
    lacking = {"support": "ignored", "patch": "error", "src": ["test"]}
    target = adapter_of("openai_compatible", params={"top_logprobs": lacking})
    with pytest.raises(ProviderError, match="top_logprobs"):
        sent_by(target, logprobs=2)
