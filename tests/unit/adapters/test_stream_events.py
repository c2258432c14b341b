"""Typed events: what a payload of a stream is taken for, and that no payload breaks the reader."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.stream import StreamEvent, read_event
from adapters.stream_edits import usage_event, with_model, without_usage
from adapters.types import EventKind, Usage

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
# Near enough to a chunk that every branch is met with values it does not expect.
ODD_DELTA = st.dictionaries(
    st.sampled_from(
        ["content", "reasoning_content", "reasoning", "refusal", "tool_calls", "function_call", "audio", "role"]
    ),
    JSON,
    max_size=4,
)
ODD_CHOICE = st.dictionaries(
    st.sampled_from(["index", "delta", "text", "finish_reason", "logprobs"]),
    JSON | ODD_DELTA | st.integers(0, 3) | st.just("stop"),
    max_size=4,
)
ODD_USAGE = st.dictionaries(
    st.sampled_from(["prompt_tokens", "completion_tokens", "prompt_tokens_details", "completion_tokens_details"]),
    JSON
    | st.integers(-5, 10**20)
    | st.dictionaries(st.sampled_from(["cached_tokens", "reasoning_tokens"]), JSON, max_size=2),
    max_size=4,
)
ODD_CHUNK = st.dictionaries(
    st.sampled_from(["choices", "usage", "error", "model", "id"]),
    JSON | st.lists(ODD_CHOICE | JSON, max_size=3) | ODD_USAGE,
    max_size=5,
)


def read(payload: Any) -> StreamEvent:
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return read_event(b"data: " + data + b"\n\n", data)


def of_delta(finish: str | None = None, **delta: Any) -> StreamEvent:
    return read({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


@pytest.mark.parametrize(
    ("delta", "kind"),
    [
        ({}, EventKind.OTHER),
        ({"role": "assistant"}, EventKind.OTHER),
        ({"role": "assistant", "content": ""}, EventKind.OTHER),
        ({"role": "assistant", "content": None}, EventKind.OTHER),
        ({"content": "Hi"}, EventKind.CONTENT),
        ({"content": " "}, EventKind.CONTENT),
        ({"reasoning_content": "hm"}, EventKind.REASONING),
        ({"reasoning": "hm"}, EventKind.REASONING),
        ({"content": "", "reasoning": "hm"}, EventKind.REASONING),
        ({"content": "Hi", "reasoning": "hm"}, EventKind.CONTENT),
        ({"tool_calls": [{"index": 0}]}, EventKind.TOOL_DELTA),
        ({"tool_calls": []}, EventKind.OTHER),
        ({"tool_calls": None}, EventKind.OTHER),
        ({"refusal": "no"}, EventKind.CONTENT),
        ({"function_call": {"name": "f"}}, EventKind.CONTENT),
        ({"audio": {"data": "x"}}, EventKind.CONTENT),
    ],
)
def test_a_delta_is_known_by_what_it_carries(delta: dict[str, Any], kind: EventKind) -> None:
    event = of_delta(**delta)
    assert event.kind is kind
    assert event.has_choices
    assert (event.text_bytes > 0) == (kind is not EventKind.OTHER)


@pytest.mark.parametrize(("text", "kind"), [("Hi", EventKind.CONTENT), ("", EventKind.OTHER), (None, EventKind.OTHER)])
def test_text_completions_carry_text(text: Any, kind: EventKind) -> None:
    assert read({"choices": [{"index": 0, "text": text}]}).kind is kind


def test_the_finish_reasons_of_all_choices_are_read() -> None:
    event = read(
        {"choices": [{"index": 1, "delta": {}, "finish_reason": "stop"}, {"delta": {}, "finish_reason": "length"}]}
    )
    assert event.kind is EventKind.FINISH
    assert event.finish_reasons == ((1, "stop"), (0, "length"))


def test_content_with_a_finish_reason_is_content() -> None:
    event = of_delta("stop", content="Hi")
    assert (event.kind, event.finish_reasons, event.text_bytes) == (EventKind.CONTENT, ((0, "stop"),), 2)


@pytest.mark.parametrize("error", [{"message": "x"}, "x", True, [], 5, {"a": None}])
@pytest.mark.parametrize("choices", [None, [], [{"delta": {"content": "Hi"}}]])
def test_an_error_counts_before_everything_else(error: Any, choices: Any) -> None:
    assert read({"error": error, "choices": choices}).kind is EventKind.ERROR


@pytest.mark.parametrize("error", [None, "", {}, False])
def test_an_empty_error_is_none(error: Any) -> None:
    assert read({"error": error, "choices": [{"delta": {"content": "Hi"}}]}).kind is EventKind.CONTENT


@pytest.mark.parametrize(
    ("usage", "read_as"),
    [
        ({"prompt_tokens": 5, "completion_tokens": 2}, Usage(5, 2)),
        ({"prompt_tokens": 0, "completion_tokens": 0}, Usage(0, 0)),
        ({"prompt_tokens": 5}, Usage(5, 0)),
        ({"prompt_tokens": 5, "completion_tokens": None}, Usage(5, 0)),
        (
            {
                "prompt_tokens": 5,
                "completion_tokens": 2,
                "prompt_tokens_details": {"cached_tokens": 4},
                "completion_tokens_details": {"reasoning_tokens": 1},
            },
            Usage(5, 2, 4, 1),
        ),
        (
            {
                "prompt_tokens": 5,
                "completion_tokens": 2,
                "prompt_tokens_details": {"cached_tokens": 99},
                "completion_tokens_details": {"reasoning_tokens": -1},
            },
            Usage(5, 2, 5, 0),
        ),
        ({"prompt_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": "many"}}, Usage(5, 2)),
    ],
)
def test_usage_is_read(usage: Any, read_as: Usage) -> None:
    event = read({"choices": [], "usage": usage})
    assert (event.kind, event.usage, event.has_usage, event.has_choices) == (EventKind.USAGE, read_as, True, False)


@pytest.mark.parametrize(
    "usage",
    [{}, [], "x", 5, {"prompt_tokens": -1}, {"prompt_tokens": "five"}, {"prompt_tokens": 5, "completion_tokens": -1},
     {"prompt_tokens": 10**10}, {"prompt_tokens": 5, "completion_tokens": 10**30}, {"completion_tokens": 5}],
)  # fmt: skip
def test_a_usage_that_makes_no_sense_is_worth_nothing(usage: Any) -> None:
    event = read({"choices": [{"delta": {"content": "Hi"}}], "usage": usage})
    assert (event.kind, event.usage, event.has_usage) == (EventKind.CONTENT, None, True)
    assert "usage" not in json.loads(without_usage(event).data)


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"5", b"null", b'"x"', b'{"choices": 5}', b'{"choices": [null]}', b'{"choices": [[]]}',
     b'{"choices": [{"delta": 5}]}', b'{"choices": [{"finish_reason": 5}]}', b'{"choices": [{"index": "0"}]}',
     b'{"usage": ' + b"[" * 5000, b'{"choices":[{"delta":{"content":' + b"[" * 5000, b"\xff"],
)  # fmt: skip
def test_what_is_no_chunk_is_a_decode_error(data: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        read(data)


@given(ODD_CHUNK | JSON)
@settings(max_examples=400, deadline=None)
def test_no_json_makes_the_reader_fail_otherwise(payload: Any) -> None:
    try:
        event = read(payload)
    except msgspec.DecodeError:
        return
    assert event.text_bytes >= 0
    assert event.usage is None or (event.usage.prompt_tokens >= 0 and event.usage.completion_tokens >= 0)
    assert event.has_usage or event.usage is None
    if event.kind is not EventKind.ERROR:
        for rebuilt in (without_usage(event), with_model(event, b'"m"'), usage_event(event)):
            assert json.loads(rebuilt.data) is not None
            assert rebuilt.raw == b"data: " + rebuilt.data + b"\n\n"


@given(st.binary(max_size=60))
@settings(max_examples=200, deadline=None)
def test_no_bytes_make_the_reader_fail_otherwise(data: bytes) -> None:
    with contextlib.suppress(msgspec.DecodeError):
        read(data)


def test_repairs_leave_all_else_as_it_was() -> None:
    event = read(
        b'{"id":"x","model":"real","choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"prompt_tokens":1},"y":1.50}'
    )
    assert without_usage(event).data == (
        b'{"id":"x","model":"real","choices":[{"index":0,"delta":{"content":"a"}}],"y":1.50}'
    )
    assert b'"model":"alias"' in with_model(event, b'"alias"').data
    assert b'"y":1.50' in with_model(event, b'"alias"').data
    assert usage_event(event).data == (
        b'{"id":"x","model":"real","choices":[],"usage":{"prompt_tokens":1,"total_tokens":1},"y":1.50}'
    )


def test_an_event_without_a_model_gets_none() -> None:
    event = read({"choices": []})
    assert with_model(event, b'"alias"') is event
