"""Whole answers: read, checked, and turned into streams and back without losing anything."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters import answers
from adapters.answers import UnreadableError, fold, unfold
from adapters.failures import ErrorFields
from adapters.types import Operation, Usage
from adapters.usage import read_usage

TEXT = st.text(max_size=20)
CALL = st.fixed_dictionaries(
    {
        "id": st.text(min_size=1, max_size=8),
        "type": st.just("function"),
        "function": st.fixed_dictionaries({"name": st.text(min_size=1, max_size=8), "arguments": TEXT}),
    }
)
MESSAGE = st.fixed_dictionaries(
    {"role": st.just("assistant"), "content": TEXT | st.none()},
    optional={
        "reasoning_content": st.text(min_size=1, max_size=9),
        "tool_calls": st.lists(CALL, min_size=1, max_size=3),
        "refusal": st.text(min_size=1, max_size=9),
    },
)
REASON = st.sampled_from(["stop", "length", "tool_calls", "content_filter"])
LOGPROBS = st.none() | st.just({"content": [{"token": "a", "logprob": -0.5}], "refusal": None})
CHOICE = st.fixed_dictionaries({"message": MESSAGE, "finish_reason": REASON, "logprobs": LOGPROBS})
USAGE = st.fixed_dictionaries({"prompt_tokens": st.integers(0, 10**6), "completion_tokens": st.integers(0, 10**6)})


@st.composite
def wholes(draw: st.DrawFn) -> dict[str, Any]:
    choices = draw(st.lists(CHOICE, min_size=1, max_size=3))
    numbered = [{"index": index, **choice} for index, choice in enumerate(choices)]
    whole = {"id": draw(TEXT), "object": "chat.completion", "created": 5, "model": draw(TEXT), "choices": numbered}
    usage = draw(st.none() | USAGE)
    return whole if usage is None else {**whole, "usage": usage}


def encode(value: Any) -> bytes:
    return msgspec.json.encode(value)


@given(wholes())
@settings(max_examples=150, deadline=None)
def test_what_is_unfolded_and_folded_is_the_same(whole: dict[str, Any]) -> None:
    back = json.loads(fold(unfold(encode(whole), Operation.CHAT), Operation.CHAT))
    for key in ("id", "object", "created", "model", "usage"):
        assert back.get(key) == whole.get(key)
    for before, after in zip(whole["choices"], back["choices"], strict=True):
        assert (after["index"], after["finish_reason"]) == (before["index"], before["finish_reason"])
        silent = before["message"] == {"role": "assistant", "content": None}
        assert after["message"] == ({"role": "assistant", "content": ""} if silent else before["message"])
        assert (after.get("logprobs") or {}).get("content") == (before["logprobs"] or {}).get("content")


@given(st.lists(st.tuples(TEXT, REASON), min_size=1, max_size=3))
@settings(max_examples=50, deadline=None)
def test_completions_keep_their_text(choices: list[tuple[str, str]]) -> None:
    numbered = [{"index": n, "text": text, "finish_reason": reason} for n, (text, reason) in enumerate(choices)]
    body = encode({"object": "text_completion", "choices": numbered})
    back = json.loads(fold(unfold(body, Operation.COMPLETIONS), Operation.COMPLETIONS))
    assert [(choice["text"], choice["finish_reason"]) for choice in back["choices"]] == choices
    assert back["object"] == "text_completion"


def test_tool_calls_in_pieces_become_whole_calls() -> None:
    def piece(**delta: Any) -> bytes:
        return encode({"choices": [{"index": 0, "delta": delta}]})

    def call(index: int, **function: str) -> dict[str, Any]:
        return {"index": index, "function": function}

    payloads = [
        piece(role="assistant", content=None),
        piece(tool_calls=[{"id": "a", "type": "function", **call(0, name="f", arguments="")}]),
        piece(tool_calls=[call(0, arguments='{"x":')]),
        piece(tool_calls=[{"id": "b", "type": "function", **call(1, name="g", arguments="{}")}]),
        piece(tool_calls=[call(0, arguments="1}")]),
        encode({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
    ]
    (choice,) = json.loads(fold(payloads, Operation.CHAT))["choices"]
    assert choice["message"]["tool_calls"] == [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}},
        {"id": "b", "type": "function", "function": {"name": "g", "arguments": "{}"}},
    ]
    assert choice["message"]["content"] is None


def test_a_missing_finish_reason_is_not_made_up() -> None:
    payloads = unfold(encode({"choices": [{"message": {"content": "a"}}]}), Operation.CHAT)
    assert all(json.loads(payload)["choices"][0]["finish_reason"] is None for payload in payloads)
    with pytest.raises(UnreadableError, match="finish_reason"):
        fold(payloads, Operation.CHAT)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["choices", "delta", "message", "tool_calls", "index", "function", "arguments", "logprobs",
                         "content", "text", "usage", "name", "id", "finish_reason"]),
        inner,
        max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@given(st.lists(JSON, max_size=3), st.sampled_from([Operation.CHAT, Operation.COMPLETIONS]))
@settings(max_examples=400, deadline=None)
def test_no_stream_makes_folding_fail_otherwise(payloads: list[Any], operation: Operation) -> None:
    with contextlib.suppress(UnreadableError):
        json.loads(fold([encode(payload) for payload in payloads], operation))


@given(
    JSON | st.builds(lambda choices: {"choices": choices}, st.lists(JSON, max_size=3)),
    st.sampled_from(list(Operation)[:2]),
)
@settings(max_examples=400, deadline=None)
def test_no_answer_makes_unfolding_fail_otherwise(whole: Any, operation: Operation) -> None:
    with contextlib.suppress(UnreadableError):
        unfold(encode(whole), operation)


@given(JSON)
@settings(max_examples=200, deadline=None)
def test_no_json_makes_reading_fail_otherwise(whole: Any) -> None:
    try:
        answer = answers.read_answer(encode(whole))
    except msgspec.DecodeError:
        return
    read_usage(answer.usage)
    assert answers.text_bytes(answer) >= 0
    assert answers.is_complete(answer, Operation.CHAT) in (True, False)
    if answers.has_error(answer):
        assert isinstance(answers.error_in(answer), ErrorFields)


@given(JSON)
@settings(max_examples=200, deadline=None)
def test_every_error_in_an_answer_can_be_told(error: Any) -> None:
    answer = answers.read_answer(encode({"error": error}))
    assert isinstance(answers.error_in(answer), ErrorFields)


@pytest.mark.parametrize("index", [-1, 2048, 10**12, "0", 1.5])
def test_a_tool_call_from_nowhere_is_unreadable(index: Any) -> None:
    with pytest.raises(UnreadableError):
        fold([encode({"choices": [{"delta": {"tool_calls": [{"index": index}]}}]})], Operation.CHAT)


@pytest.mark.parametrize(
    ("body", "operation", "complete"),
    [
        ({"choices": [{"message": {}}]}, Operation.CHAT, True),
        ({"choices": [{"finish_reason": "stop"}]}, Operation.CHAT, False),
        ({"choices": []}, Operation.CHAT, False),
        ({"choices": None}, Operation.CHAT, False),
        ({}, Operation.COMPLETIONS, False),
        ({"data": []}, Operation.EMBEDDINGS, True),
        ({"data": {}}, Operation.EMBEDDINGS, False),
        ({"choices": [{}]}, Operation.EMBEDDINGS, False),
    ],
)
def test_an_answer_holds_what_was_asked_for_or_not(body: Any, operation: Operation, complete: bool) -> None:
    assert answers.is_complete(answers.read_answer(encode(body)), operation) is complete


def test_usage_of_embeddings_has_no_completion() -> None:
    answer = answers.read_answer(b'{"data":[],"usage":{"prompt_tokens":7,"total_tokens":7}}')
    assert read_usage(answer.usage) == Usage(7, 0)


def test_the_model_is_replaced_and_all_else_kept() -> None:
    assert (
        answers.with_model(b'{"id":"x","model":"real","n":1.50}', b'"alias"') == b'{"id":"x","model":"alias","n":1.50}'
    )
