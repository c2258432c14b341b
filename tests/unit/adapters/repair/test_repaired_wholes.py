"""Whole answers follow the same rules as streams, and pass byte for byte where none applies."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adapters.answers import UnreadableError
from adapters.draft import AnswerNeeds
from adapters.repair.misplaced import AnswerFailedError
from adapters.types import Operation
from tests.fakes.repaired import MEMBERS, TOOLS, call, repair_with, repaired_body, repaired_whole, whole
from tests.unit.adapters.repair.test_repaired_alike import token
from tests.unit.adapters.repair.whole_answers import WRITTEN, choice_of, tool

UNCHANGED: list[Any] = [
    pytest.param(whole(content="Hi"), id="text"),
    pytest.param(whole(content="Hi", refusal=None, annotations=[]), id="with-empty-members"),
    pytest.param(whole("length", content=""), id="empty"),
    pytest.param(whole(content="a <think>b</think>"), id="tags-in-the-middle"),
    pytest.param(whole(content="\n{no json"), id="odd-beginning"),
    pytest.param(whole("tool_calls", content=None, tool_calls=[tool()]), id="calls"),
    pytest.param(whole(content="Hi", reasoning_content="hm"), id="reasoning"),
    pytest.param(whole(content=None, refusal="no"), id="refusal"),
    pytest.param({**whole(content="Hi"), "x_vendor": {"n": 1.50}}, id="unknown-member"),
    pytest.param(whole("function_call", content=None, function_call={"name": "f", "arguments": "{}"}), id="old-style"),
]


@pytest.mark.parametrize("answer", UNCHANGED)
def test_an_answer_as_openai_gives_it_is_the_same_bytes(answer: dict[str, Any]) -> None:
    body = json.dumps(answer, indent=1).encode()
    assert repaired_body(body) is body


@pytest.mark.parametrize("arguments", [None, "", {}])
def test_a_call_without_arguments_has_an_empty_object(arguments: Any) -> None:
    """langchain-ai/langchain#34242."""
    choice = choice_of(whole("tool_calls", content=None, tool_calls=[tool(arguments)]))
    assert choice["message"]["tool_calls"] == [tool()]
    assert choice["finish_reason"] == "tool_calls"


def test_arguments_that_are_an_object_become_text() -> None:
    choice = choice_of(whole("tool_calls", content=None, tool_calls=[tool({"city": "Oslo"})]))
    assert choice["message"]["tool_calls"] == [tool('{"city":"Oslo"}')]


@pytest.mark.parametrize("missing", [{"id": ""}, {"id": None}, {"type": None}])
def test_a_call_gets_what_it_lacks(missing: dict[str, Any]) -> None:
    (found,) = choice_of(whole("stop", content=None, tool_calls=[tool(**missing)]))["message"]["tool_calls"]
    assert found["id"].startswith("call_")
    assert found["type"] == "function"


@pytest.mark.parametrize(("reason", "told"), [("tool_use", "tool_calls"), ("stop", "tool_calls"), ("length", "length")])
def test_the_reason_agrees_with_the_calls(reason: str, told: str) -> None:
    assert choice_of(whole(reason, content=None, tool_calls=[tool()]))["finish_reason"] == told


@pytest.mark.parametrize(
    ("reason", "told"), [("end_turn", "stop"), ("eos", "stop"), ("MAX_TOKENS", "length"), (None, "stop")]
)
def test_the_reason_is_one_that_clients_know(reason: Any, told: str) -> None:
    """theopenco/llmgateway#3492; PowerShell/AIShell#350 for the missing one."""
    assert choice_of(whole(reason, content="Hi"))["finish_reason"] == told


def test_an_answer_that_says_it_failed_is_a_failure() -> None:
    with pytest.raises(AnswerFailedError):
        repaired_whole(whole("abort", content="Hi"))


def test_empty_lists_of_calls_go() -> None:
    assert choice_of(whole(content="Hi", tool_calls=[]))["message"] == {"role": "assistant", "content": "Hi"}


def test_only_the_first_call_is_kept_where_only_one_may_come() -> None:
    answer = whole("tool_calls", content=None, tool_calls=[tool(), tool(id="call_2", name="other")])
    assert choice_of(answer, needs=AnswerNeeds(one_call=True))["message"]["tool_calls"] == [tool()]


def test_reasoning_has_one_name() -> None:
    message = choice_of(whole(content="Hi", reasoning="hm"), "groq")["message"]
    assert message == {"role": "assistant", "content": "Hi", "reasoning_content": "hm"}


def test_tags_are_parted() -> None:
    message = choice_of(whole(content="<think>\nhm</think>\n\nHi"), "vllm")["message"]
    assert message == {"role": "assistant", "content": "Hi", "reasoning_content": "hm"}


def test_a_call_written_as_text_becomes_one() -> None:
    choice = choice_of(whole(content=WRITTEN), "fireworks", request=TOOLS)
    (found,) = choice["message"]["tool_calls"]
    assert found["function"] == {"name": "get_weather", "arguments": '{"city":"Oslo"}'}
    assert (choice["message"]["content"], choice["finish_reason"]) == (None, "tool_calls")


def test_stops_cut_text_and_log_probabilities() -> None:
    answer = whole("length", content="a END b")
    tokens = [token(text, -1.0) for text in ("a", " ", "END", " b")]
    answer["choices"][0]["logprobs"] = {"content": tokens, "refusal": None}
    choice = choice_of(answer, needs=AnswerNeeds(stops=("END",)))
    assert (choice["message"]["content"], choice["finish_reason"]) == ("a ", "stop")
    assert [one["token"] for one in choice["logprobs"]["content"]] == ["a", " "]


def test_what_is_the_providers_own_goes_and_all_else_stays() -> None:
    answer = {**whole("eos", content="Hi"), "x_groq": {"id": 1}, "system_fingerprint": "fp"}
    answer["choices"][0]["stop_reason"] = 5
    out = repaired_whole(answer, "groq")
    assert "x_groq" not in out
    assert (out["system_fingerprint"], out["choices"][0]["stop_reason"]) == ("fp", 5)
    assert out["usage"] == answer["usage"]


def test_a_time_in_milliseconds_is_told_in_seconds() -> None:
    assert repaired_whole(whole(content="Hi", members={"created": 1760000000123}))["created"] == 1760000000


def test_members_of_a_message_with_nothing_in_them_stay() -> None:
    nothing = dict.fromkeys(("refusal", "annotations", "audio", "function_call", "reasoning", "reasoning_content"))
    answer = whole("tool_calls", content=None, tool_calls=[{"id": "a", **call(0, "{}", "get_time")}], **nothing)
    out = choice_of(answer)["message"]
    assert {name: out[name] for name in nothing} == nothing


def test_what_strict_clients_need_is_filled_in() -> None:
    out = repaired_whole({"choices": [{"message": {"content": "Hi"}}, {"message": {"content": "Ho"}}]})
    assert (out["object"], out["model"]) == ("chat.completion", "up")
    assert isinstance(out["created"], int)
    assert out["id"].startswith("chatcmpl-")
    assert [(one["index"], one["message"]["content"], one["finish_reason"]) for one in out["choices"]] == [
        (0, "Hi", "stop"), (1, "Ho", "stop"),
    ]  # fmt: skip
    assert {one["message"]["role"] for one in out["choices"]} == {"assistant"}


def test_choices_that_share_an_index_are_told_apart() -> None:
    answer = whole(content="a")
    answer["choices"].append({"index": 0, "message": {"role": "assistant", "content": "b"}, "finish_reason": "stop"})
    out = repaired_whole({**answer, "id": ""})
    assert [(one["index"], one["message"]["content"]) for one in out["choices"]] == [(0, "a"), (1, "b")]


def test_a_text_completion_has_text_and_a_known_reason() -> None:
    answer = {**MEMBERS, "object": "text_completion", "choices": [{"index": 0, "text": None, "finish_reason": "eos"}]}
    (choice,) = repaired_whole(answer, operation=Operation.COMPLETIONS)["choices"]
    assert (choice["text"], choice["finish_reason"]) == ("", "stop")


@pytest.mark.parametrize(
    "choices", [[{"index": 0, "message": {"tool_calls": [5]}}], [{"message": {"tool_calls": ["get_time"]}}]]
)
def test_what_is_no_answer_is_refused(choices: list[Any]) -> None:
    with pytest.raises(UnreadableError):
        repaired_whole({"choices": choices})


def test_a_mended_answer_needs_no_more_mending() -> None:
    answer = whole("tool_use", content="<think>a</think>b", tool_calls=[tool(None)], reasoning=None)
    once = repaired_body(json.dumps(answer).encode(), "vllm")
    assert repaired_body(once, "vllm") is once


def test_tags_may_be_others() -> None:
    provider = repair_with(reasoning={"tags": {"[THINK]": "[/THINK]"}})
    assert choice_of(whole(content="[THINK]a[/THINK]b"), provider)["message"]["reasoning_content"] == "a"
