"""Requests that certainly do not fit are known before they are cut somewhere; all others are left alone."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.adapter import Adapter
from adapters.context import fits, least_tokens, may_hold_more
from adapters.errors import ProviderError
from adapters.registry import load_spec
from adapters.target import Target
from adapters.types import Body, FailureKind, Operation

CUTS = {"context": {"overflow": "cuts_prompt"}}
LOWERS = {"context": {"overflow": "lowers_limit"}}


def target(window: int | None, overrides: dict[str, Any] | None = None) -> Target:
    spec = load_spec("openai_compatible").with_overrides(overrides or {})
    return Target("box/m", "box", "m", spec, context_window=window)


def body(**members: Any) -> Body:
    return msgspec.json.decode(json.dumps({"model": "m", **members}), type=Body)


def chat(content: Any, **members: Any) -> Body:
    return body(messages=[{"role": "user", "content": content}], **members)


@pytest.mark.parametrize(
    ("content", "least"),
    [
        ("word " * 3500, 3500),
        ("\n\n  \n" * 4000, 0),
        ("x" * 3200, 1),
        ("abcdefgh" * 400, 100),
        ("長い文章です。" * 100, 175),
        (
            [{"type": "text", "text": "two words"}, {"type": "image_url", "image_url": {"url": "data:" + "A" * 99999}}],
            2,
        ),
        (None, 0),
    ],
)
def test_the_least_tokens_of_a_conversation_are_counted(content: Any, least: int) -> None:
    assert least_tokens(chat(content), Operation.CHAT) == least


@pytest.mark.parametrize(
    ("operation", "members", "least"),
    [
        (Operation.COMPLETIONS, {"prompt": "a b c"}, 3),
        (Operation.COMPLETIONS, {"prompt": [1, 2, 3, 4]}, 4),
        (Operation.COMPLETIONS, {"prompt": ["a b", "a b c"]}, 3),
        (Operation.EMBEDDINGS, {"input": [[1, 2], [1, 2, 3]]}, 3),
        (Operation.EMBEDDINGS, {"input": []}, 0),
        (Operation.EMBEDDINGS, {}, 0),
    ],
)
def test_token_ids_are_counted_exactly_and_each_of_several_prompts_by_itself(
    operation: Operation, members: dict[str, Any], least: int
) -> None:
    assert least_tokens(body(**members), operation) == least


def test_a_target_that_cuts_prompts_refuses_what_does_not_fit_naming_both_numbers() -> None:
    adapter = Adapter(target(2048, CUTS))

    with pytest.raises(ProviderError) as raised:
        adapter.prepare(chat("word " * 3500), Operation.CHAT, stream=False)

    assert (raised.value.kind, raised.value.param, raised.value.sent) == (FailureKind.CONTEXT_LENGTH, "messages", False)
    assert "2048" in raised.value.message
    assert "3500" in raised.value.message


def test_where_the_limit_would_be_lowered_the_answer_is_counted_too() -> None:
    long, short = chat("word " * 1500, max_tokens=1000), chat("word " * 1500, max_tokens=500)

    with pytest.raises(ProviderError, match="1500 and 1000 more for the answer"):
        Adapter(target(2048, LOWERS)).prepare(long, Operation.CHAT, stream=False)
    Adapter(target(2048, LOWERS)).prepare(short, Operation.CHAT, stream=False)
    Adapter(target(2048, CUTS)).prepare(long, Operation.CHAT, stream=False)


@pytest.mark.parametrize(
    "overrides",
    [None, {"context": {"overflow": "cuts_prompt", "ask_for_error": {"truncate": False}}}],
    ids=["refuses", "refuses when asked to"],
)
def test_a_target_that_refuses_by_itself_is_left_to_count(overrides: dict[str, Any] | None) -> None:
    Adapter(target(2048, overrides)).prepare(chat("word " * 3500), Operation.CHAT, stream=False)


def test_an_unknown_window_holds_everything() -> None:
    assert fits(target(None), chat("word " * 10**5), Operation.CHAT)
    assert not fits(target(99999), chat("word " * 10**5), Operation.CHAT)


@pytest.mark.parametrize(
    ("window", "than", "may"),
    [(8192, 4096, True), (4096, 4096, False), (2048, 4096, False), (None, 4096, True), (2048, None, True)],
)
def test_only_a_larger_window_may_hold_more(window: int | None, than: int | None, may: bool) -> None:
    assert may_hold_more(target(window), target(than)) is may


@given(st.text(max_size=400), st.integers(1, 400))
def test_what_has_no_more_bytes_than_the_window_has_tokens_always_fits(text: str, window: int) -> None:
    request = chat(text)
    size = len(bytes(request["messages"]))

    assert least_tokens(request, Operation.CHAT) <= len(text.encode("utf-8", "replace"))
    assert fits(target(max(window, size)), request, Operation.CHAT)


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["role", "content", "type", "text"]), inner, max_size=3)
    ),
)


@given(ODD)
def test_no_shape_of_messages_makes_it_fail(messages: Any) -> None:
    for operation, name in zip(Operation, ("messages", "prompt", "input"), strict=True):
        fits(target(1), body(**{name: messages}), operation)
