"""An answer that is passed on at one look is one that the full repair would not have touched."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapters import answers
from adapters.plain_answer import plain_usage
from adapters.registry import load_spec
from adapters.repair.repair import compile_repair
from adapters.types import Operation, Usage
from adapters.usage import read_usage

REPAIR = compile_repair(load_spec("openai_compatible"))
ODD: tuple[Any, ...] = (None, "", "x", 0, -1, 3, 10**12, 1.5, True, [], {}, [{}], {"cached_tokens": 2})


def _chat(**members: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": "Hello."}
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    answer = {"id": "a", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
    return answer | members


def _called(*ids: str, arguments: str = '{"zone": "UTC"}', **members: Any) -> dict[str, Any]:
    function = {"name": "get_time", "arguments": arguments}
    calls = [{"id": one, "type": "function", "function": dict(function)} for one in ids]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    return _chat(choices=[{"index": 0, "message": message, "finish_reason": "tool_calls"} | members])


def _text(**members: Any) -> dict[str, Any]:
    choice = {"index": 0, "text": "Hello.", "logprobs": None, "finish_reason": "length"}
    return _chat(object="text_completion", choices=[choice]) | members


def _agree(body: bytes, operation: Operation) -> bool:
    """Whether *body* is plain; if it is, nothing else may be said of it than the long way would."""
    usage = plain_usage(body, operation)
    if usage is None:
        return False
    answer = answers.read_answer(body)
    assert not answers.has_error(answer)
    assert answers.is_complete(answer, operation)
    assert read_usage(answer.usage) == usage
    assert REPAIR.whole(body, answer, operation, None) == body
    return True


@pytest.mark.parametrize(
    ("answer", "operation"),
    [
        pytest.param(_chat(), Operation.CHAT, id="chat"),
        pytest.param(_text(), Operation.COMPLETIONS, id="text"),
        pytest.param(_called("a"), Operation.CHAT, id="a call"),
        pytest.param(_called("a", "b", "c"), Operation.CHAT, id="three calls"),
        pytest.param(_called("a", finish_reason="length"), Operation.CHAT, id="a call at the limit"),
    ],
)
def test_the_usual_answer_is_plain(answer: dict[str, Any], operation: Operation) -> None:
    assert _agree(json.dumps(answer).encode(), operation)
    assert not _agree(json.dumps(answer).encode(), Operation.EMBEDDINGS)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(_called(), id="no calls"),
        pytest.param(_called("a", "a"), id="one id for two"),
        pytest.param(_called("a", ""), id="no id"),
        pytest.param(_called("a", arguments=" \n"), id="blank arguments"),
        pytest.param(_called("a", finish_reason="stop"), id="a reason that hides them"),
        pytest.param(_chat(choices=[_chat()["choices"][0] | {"finish_reason": "tool_calls"}]), id="a reason for none"),
    ],
)
def test_calls_that_have_to_be_mended_are_not_plain(answer: dict[str, Any]) -> None:
    assert not _agree(json.dumps(answer).encode(), Operation.CHAT)


def test_what_was_cached_and_thought_is_counted() -> None:
    details = {"prompt_tokens_details": {"cached_tokens": 9}, "completion_tokens_details": {"reasoning_tokens": 2}}
    answer = _chat(usage=_chat()["usage"] | details)

    assert plain_usage(json.dumps(answer).encode(), Operation.CHAT) == Usage(7, 3, 7, 2)


@pytest.mark.parametrize("content", ["<think>", '{"name": ', "[TOOL_CALLS]", " x", "\\", "\n"])
def test_a_text_that_may_be_more_is_looked_at_closely(content: str) -> None:
    answer = _chat()
    answer["choices"][0]["message"]["content"] = content

    assert plain_usage(json.dumps(answer).encode(), Operation.CHAT) is None


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b"<html>", b"[" * 100_000, b'{"id":' * 100_000])
def test_what_is_no_answer_is_not_plain(body: bytes) -> None:
    assert plain_usage(body, Operation.CHAT) is None


def test_a_target_whose_answers_open_with_thought_has_no_plain_ones() -> None:
    thinking = load_spec("openai_compatible")
    facts = thinking.reasoning
    opened = compile_repair(thinking)
    opened._rules.opened = True

    assert facts is not None
    assert opened.plain(json.dumps(_chat()).encode(), Operation.CHAT) is None
    assert REPAIR.plain(json.dumps(_chat()).encode(), Operation.CHAT) == Usage(7, 3)


_PLACES = st.sampled_from(
    (
        ("id",), ("object",), ("created",), ("model",), ("choices",), ("usage",), ("error",), ("more",),
        ("choices", 0), ("choices", 0, "index"), ("choices", 0, "message"), ("choices", 0, "text"),
        ("choices", 0, "finish_reason"), ("choices", 0, "logprobs"), ("choices", 0, "message", "role"),
        ("choices", 0, "message", "content"), ("choices", 0, "message", "reasoning"),
        ("choices", 0, "message", "reasoning_content"), ("choices", 0, "message", "tool_calls"),
        ("choices", 0, "message", "function_call"), ("choices", 0, "message", "refusal"),
        ("choices", 0, "message", "tool_calls", 0), ("choices", 0, "message", "tool_calls", 0, "id"),
        ("choices", 0, "message", "tool_calls", 0, "type"), ("choices", 0, "message", "tool_calls", 0, "more"),
        ("choices", 0, "message", "tool_calls", 0, "function"),
        ("choices", 0, "message", "tool_calls", 0, "function", "name"),
        ("choices", 0, "message", "tool_calls", 0, "function", "arguments"),
        ("usage", "prompt_tokens"), ("usage", "completion_tokens"), ("usage", "total_tokens"),
        ("usage", "prompt_tokens_details"), ("usage", "completion_tokens_details"),
    )
)  # fmt: skip
_VALUES = st.one_of(
    st.sampled_from(ODD),
    st.text(max_size=4),
    st.sampled_from(("stop", "length", "tool_calls", "eos", "assistant", "b")),
)


@given(
    operation=st.sampled_from((Operation.CHAT, Operation.COMPLETIONS)),
    ids=st.sampled_from(((), (), ("a",), ("a", "b"))),
    changes=st.lists(st.tuples(_PLACES, _VALUES), max_size=3),
    left_out=st.lists(_PLACES, max_size=1),
)
@example(operation=Operation.CHAT, ids=("a",), changes=[(("choices", 0, "text"), "x")], left_out=[])
def test_what_is_plain_is_what_the_repair_leaves_alone(
    operation: Operation,
    ids: tuple[str, ...],
    changes: list[tuple[tuple[Any, ...], Any]],
    left_out: list[tuple[Any, ...]],
) -> None:
    whole = _called(*ids) if ids else _chat()
    answer = whole if operation is Operation.CHAT else _text()
    for path, value in changes:
        if operation is Operation.CHAT or "message" not in path:  # a text has none, whatever one would be
            _at(answer, path, copy.deepcopy(value))
    for path in left_out:
        _at(answer, path, None, remove=True)

    _agree(json.dumps(answer).encode(), operation)


def _at(answer: Any, path: tuple[Any, ...], value: Any, *, remove: bool = False) -> None:
    for step in path[:-1]:
        try:
            answer = answer[step]
        except (KeyError, IndexError, TypeError):
            return
    if remove and isinstance(answer, dict):
        answer.pop(path[-1], None)
    elif isinstance(answer, dict) or (isinstance(answer, list) and answer and path[-1] == 0):
        answer[path[-1]] = value
