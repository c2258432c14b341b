"""Whole and streamed answers say the same, log probabilities in whatever shape among them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.answers import fold, unfold
from adapters.draft import AnswerNeeds
from adapters.types import Operation
from tests.fakes.repaired import MEMBERS, TOOLS, event_of, repaired_events, whole
from tests.unit.adapters.repair.whole_answers import WRITTEN, choice_of, tool


def with_logprobs(logprobs: Any, text: str = "ab") -> dict[str, Any]:
    answer = whole(content=text)
    answer["choices"][0]["logprobs"] = logprobs
    return answer


def token(text: str, logprob: float, *top: tuple[str, float]) -> dict[str, Any]:
    return {
        "token": text, "logprob": logprob, "bytes": list(text.encode()),
        "top_logprobs": [{"token": one, "logprob": value, "bytes": list(one.encode())} for one, value in top],
    }  # fmt: skip


SHAPES: list[Any] = [
    pytest.param({"tokens": ["a", "b"], "token_logprobs": [-1.0, -2.0], "token_ids": [5, 6]},
                 [token("a", -1.0), token("b", -2.0)], id="arrays"),
    pytest.param({"tokens": ["a", "b"], "token_logprobs": [-1.0, None], "top_logprobs": [{"a": -1.0, "x": -3.0}, None]},
                 [token("a", -1.0, ("a", -1.0), ("x", -3.0)), token("b", -9999.0)], id="arrays-with-alternatives"),
    pytest.param({"content": [{"id": 7, "token": "ab", "logprob": -1.0,
                               "top_logprobs": [{"id": 8, "token": "x", "logprob": -2.0}]}]},
                 [token("ab", -1.0, ("x", -2.0))], id="without-bytes"),
    pytest.param({"content": [{"token": "ab", "logprob": -1.0, "bytes": [97, 98], "top_logprobs": None}]},
                 [token("ab", -1.0)], id="null-alternatives"),
    pytest.param([{"token": "ab", "logprob": -1.0}], [token("ab", -1.0)], id="a-list"),
    pytest.param({"content": [{"id": 7, "logprob": -1.0}]}, [token("ab", -1.0)], id="numbers-of-tokens"),
    pytest.param(-0.25, [token("ab", -0.25)], id="a-number"),
    pytest.param({"tokens": [99], "token_logprobs": [-1.0]}, [token("ab", -1.0)], id="a-token-number"),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "tokens"), SHAPES)
def test_log_probabilities_come_in_openais_shape(shape: Any, tokens: list[Any]) -> None:
    assert choice_of(with_logprobs(shape))["logprobs"] == {"content": tokens, "refusal": None}


def test_unreadable_log_probabilities_are_none() -> None:
    assert choice_of(with_logprobs("?"))["logprobs"] is None


def test_no_more_alternatives_are_told_than_were_asked_for() -> None:
    shape = {"tokens": ["ab"], "token_logprobs": [-1.0], "top_logprobs": [{"ab": -1.0, "x": -2.0}]}
    needs = AnswerNeeds(logprobs=True, top_logprobs=1)
    assert choice_of(with_logprobs(shape), needs=needs)["logprobs"]["content"] == [token("ab", -1.0, ("ab", -1.0))]
    full = {"content": [token("ab", -1.0, ("ab", -1.0), ("x", -2.0))], "refusal": None}
    cut = choice_of(with_logprobs(full), needs=AnswerNeeds(logprobs=True))["logprobs"]
    assert cut["content"] == [token("ab", -1.0)]


@pytest.mark.parametrize("value", [-0.5, {"token_logprobs": [-0.5], "tokens": ["a"]}])
def test_a_stream_tells_them_in_the_same_shape(value: Any) -> None:
    piece = {**MEMBERS, "choices": [{"index": 0, "delta": {"role": "assistant", "content": "a"}, "logprobs": value}]}
    (event,) = repaired_events([event_of(piece)], "together")
    assert json.loads(event.data)["choices"][0]["logprobs"] == {"content": [token("a", -0.5)], "refusal": None}


MESSAGES = st.fixed_dictionaries(
    {
        "role": st.just("assistant"),
        "content": st.sampled_from([None, "", "Hi", "<think>a</think>b", WRITTEN, "a END b"]),
    },
    optional={
        "reasoning": st.just("hm"),
        "tool_calls": st.lists(st.sampled_from([tool(None), tool({"a": 1}), tool(id="")]), max_size=2),
    },
)
REASONS = st.sampled_from(["stop", "eos", "tool_use", "length", "function_call"])
NEEDS = st.sampled_from([None, AnswerNeeds(stops=("END",)), AnswerNeeds(one_call=True)])


@given(MESSAGES, REASONS, NEEDS, st.sampled_from(["vllm", "fireworks"]))
@settings(max_examples=200, deadline=None)
def test_whole_and_streamed_say_the_same(message: Any, reason: str, needs: AnswerNeeds | None, provider: str) -> None:
    answer = whole(reason, **message)
    streamed = [event_of(json.loads(one)) for one in unfold(json.dumps(answer).encode(), Operation.CHAT)]
    events = repaired_events(streamed, provider, needs=needs, request=TOOLS)
    (told,) = json.loads(fold([one.data for one in events], Operation.CHAT))["choices"]
    one = choice_of(answer, provider, needs=needs, request=TOOLS)
    assert {**told["message"], "content": told["message"]["content"] or ""} == {
        **one["message"], "content": one["message"]["content"] or "",
    }  # fmt: skip
    assert told["finish_reason"] == one["finish_reason"]
