"""What becomes of a parameter that a target lacks: refused, dropped and told, or said in another way."""

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


def test_alternatives_by_number_are_refused_where_there_are_none() -> None:
    lacking = {"support": "ignored", "patch": "error", "src": ["test"]}
    target = adapter_of("openai_compatible", params={"top_logprobs": lacking})
    with pytest.raises(ProviderError, match="top_logprobs"):
        sent_by(target, logprobs=2)
