"""Limits for an answer that no answer could reach, because the context window ends before."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adapters.adapter import Adapter
from adapters.draft import Unsupported
from adapters.errors import ProviderError
from adapters.registry import load_spec
from adapters.target import Target
from adapters.types import FailureKind, Operation
from tests.fakes.prepared import HELLO, one, sent_by

WINDOW = 8192


def adapter(provider: str = "openai_compatible", window: int | None = WINDOW, most: int | None = None) -> Adapter:
    return Adapter(Target("acme/up", "acme", "m", load_spec(provider), max_output_tokens=most, context_window=window))


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
@pytest.mark.parametrize("asked", [WINDOW, 100_000])
def test_a_limit_beyond_the_window_is_lowered_to_what_the_prompt_leaves(name: str, asked: int) -> None:
    sent = sent_by(adapter(), **one(name, asked))

    room = WINDOW - len(json.dumps([HELLO]))
    assert sent.body[name] == room
    assert sent.told == [f"{name}=clamped"]
    assert sent.lossy


@pytest.mark.parametrize("asked", [1, WINDOW - 1])
def test_a_limit_within_the_window_stays(asked: int) -> None:
    sent = sent_by(adapter(), max_tokens=asked)

    assert (sent.body["max_tokens"], sent.told) == (asked, [])


def test_a_limit_stays_where_the_window_is_not_known() -> None:
    assert sent_by(adapter(window=None), max_tokens=1_000_000).body["max_tokens"] == 1_000_000


def test_the_room_beside_a_long_prompt_is_estimated() -> None:
    prompt = "word " * 3000  # more bytes than the window has tokens
    sent = sent_by(adapter(), messages=[{"role": "user", "content": prompt}], max_tokens=WINDOW)

    assert 0 < sent.body["max_tokens"] < WINDOW - 3000


def test_the_known_maximum_of_answers_counts_first() -> None:
    assert sent_by(adapter(most=1000), max_tokens=100_000).body["max_tokens"] == 1000


def test_the_same_for_text_completions() -> None:
    sent = sent_by(adapter(), Operation.COMPLETIONS, prompt="a", max_tokens=100_000)

    assert sent.body["max_tokens"] == WINDOW - len('"a"')


def test_a_client_may_rather_be_refused() -> None:
    with pytest.raises(ProviderError) as refused:
        sent_by(adapter(), Operation.CHAT, Unsupported.REJECT, max_tokens=100_000)

    assert (refused.value.kind, refused.value.param) == (FailureKind.UNSUPPORTED_PARAMETER, "max_tokens")


@pytest.mark.parametrize(("most", "asked"), [(None, 100_000), (1000, 8000)])
def test_a_target_that_would_cut_the_answer_in_silence_is_asked_for_what_fits(most: int | None, asked: int) -> None:
    prompt: dict[str, Any] = {"role": "user", "content": "word " * 1000}

    sent = sent_by(adapter("fireworks", most=most), messages=[prompt], max_tokens=asked)

    assert sent.body["max_tokens"] <= WINDOW - 1000
    assert "max_tokens=clamped" in sent.told
