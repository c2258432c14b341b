"""Fields of a request that are not known to the provider, or not at that endpoint."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.types import Operation
from tests.fakes.prepared import adapter_of, sent_by


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


def test_embeddings_keep_what_they_need() -> None:
    strict = adapter_of("fireworks")
    sent = sent_by(strict, Operation.EMBEDDINGS, input="a", dimensions=5, encoding_format="float", truncate=True)
    assert sorted(sent.body) == ["dimensions", "encoding_format", "input", "model"]
    assert sent.told == ["truncate=dropped"]
