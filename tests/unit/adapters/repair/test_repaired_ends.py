"""How a stream's choices end: for a reason that clients know, once, after all that was said."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.repair.finish import FAILED, FinishReasons
from adapters.repair.misplaced import AnswerFailedError
from tests.fakes.repaired import ROLE, STOP, TOOLS, call, chunk, repair_with, repaired

CALL = chunk(tool_calls=[call(0, "{}", "get_time", id="x", type="function")])
HI = chunk(content="Hi")


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("stop", "stop"), ("length", "length"), ("content_filter", "content_filter"),
        ("eos", "stop"), ("eos_token", "stop"), ("stop_sequence", "stop"), ("end_turn", "stop"), ("STOP", "stop"),
        ("COMPLETE", "stop"), ("never heard of it", "stop"),
        ("max_tokens", "length"), ("MAX_TOKENS", "length"), ("model_length", "length"),
        ("SAFETY", "content_filter"), ("sensitive", "content_filter"), ("refusal", "content_filter"),
        ("tool_calls", "stop"), ("tool_use", "stop"), ("function_call", "stop"),
    ],
)  # fmt: skip
def test_a_text_ends_with_a_word_that_clients_know(reason: str, told: str) -> None:
    """openai/openai-dotnet#267; theopenco/llmgateway#3492; BerriAI/litellm#12481."""
    assert repaired([ROLE, HI, chunk(reason)]).finish[0] == [told]


@pytest.mark.parametrize("reason", ["tool_calls", "tool_use", "stop", "eos", "end_turn", "function_call", "tool_call"])
def test_an_answer_with_calls_ends_with_tool_calls(reason: str) -> None:
    """BerriAI/litellm#12862 and Blaizzy/mlx-vlm#1014: agents act on calls only when the reason names them."""
    assert repaired([ROLE, CALL, chunk(reason)], request={**TOOLS, "tool_choice": "required"}).finish[0] == [
        "tool_calls"
    ]


@pytest.mark.parametrize("reason", ["stop", "eos"])
def test_after_a_named_tool_stop_stays_as_openai_says_it(reason: str) -> None:
    """vllm-project/vllm#25054 has OpenAI's own answers."""
    named = {"type": "function", "function": {"name": "get_time"}}
    assert repaired([ROLE, CALL, chunk(reason)], request={**TOOLS, "tool_choice": named}).finish[0] == ["stop"]


def test_the_file_of_a_provider_comes_before_what_is_usual() -> None:
    provider = repair_with(finish_reason={"values": ["eos"], "nonstandard": {"eos": "length"}})
    assert repaired([ROLE, HI, chunk("eos")], provider).finish[0] == ["length"]


@pytest.mark.parametrize("reason", ["abort", "error", "network_error"])
def test_a_reason_that_tells_of_a_failure_is_one(reason: str) -> None:
    with pytest.raises(AnswerFailedError, match=reason):
        repaired([ROLE, HI, chunk(reason)], "vllm")


def test_the_error_beside_such_a_reason_is_what_is_told() -> None:
    last = chunk("error")
    last["choices"][0]["error"] = {"message": "overheated", "code": 503}
    with pytest.raises(AnswerFailedError) as failure:
        repaired([ROLE, HI, last])
    assert (failure.value.fields.message, failure.value.fields.status) == ("overheated", 503)


@pytest.mark.parametrize("none", ["", "null", None])
def test_a_reason_that_is_none_ends_nothing(none: str | None) -> None:
    """ollama/ollama#4357, sgl-project/sglang#1407, Ai00-X/ai00_server#90, aaif-goose/goose#10258."""
    out = repaired([chunk(none, role="assistant"), chunk(none, content="Hi"), chunk(none, content="!"), STOP])
    assert out.said == ("Hi!", "", [], ["stop"])
    assert [one["choices"][0]["finish_reason"] for one in out.events] == [None, None, None, "stop"]


def test_a_reason_that_is_left_out_until_the_end_is_null() -> None:
    """mlflow/mlflow#23139: clients look it up in each chunk."""
    open_ended = [{**one, "choices": [{"index": 0, "delta": one["choices"][0]["delta"]}]} for one in (ROLE, HI, HI)]
    out = repaired([*open_ended, STOP])
    assert [one["choices"][0]["finish_reason"] for one in out.events] == [None, None, None, "stop"]


def test_a_reason_on_reasoning_and_calls_ends_nothing() -> None:
    """su-kaka/gcli2api#403."""
    pieces = [chunk("stop", reasoning="hm"), chunk("stop", tool_calls=[call(0, "{}", "get_time", id="x")])]
    out = repaired([chunk("stop", role="assistant", content=""), *pieces, chunk("stop")])
    assert out.said == ("", "hm", [("get_time", "{}")], ["tool_calls"])


def test_a_reason_on_every_chunk_counts_on_the_last() -> None:
    """BerriAI/litellm#2195, open-webui/open-webui#16377."""
    out = repaired(
        [chunk("stop", role="assistant", content="a"), chunk("stop", content="b"), chunk("stop", content="c")]
    )
    assert [one["choices"][0]["finish_reason"] for one in out.events] == [None, None, "stop"]
    assert out.content[0] == "abc"


def test_a_choice_ends_once() -> None:
    """sgl-project/sglang#8417."""
    out = repaired([ROLE, HI, STOP, STOP, chunk("length"), chunk(), chunk(content="")])
    assert (out.finish[0], len(out.events)) == (["stop"], 3)


def test_text_after_the_end_is_not_lost() -> None:
    out = repaired([ROLE, STOP, chunk("stop", content="late")])
    assert out.said == ("late", "", [], ["stop"])


def test_an_end_that_is_told_twice_comes_after_all_text() -> None:
    out = repaired([ROLE, chunk("stop", content="a"), STOP])
    assert [(one["choices"][0]["delta"].get("content"), one["choices"][0]["finish_reason"]) for one in out.events] == [
        ("", None), ("a", "stop"),
    ]  # fmt: skip


@pytest.mark.parametrize("last", [STOP, chunk("stop", content="")])
def test_an_answer_of_nothing_ends_too(last: Any) -> None:
    assert repaired([ROLE, last]).said == ("", "", [], ["stop"])
    assert repaired([last]).finish[0] == ["stop"]


def test_the_end_of_one_choice_does_not_wait_for_another() -> None:
    stream = [
        chunk("stop", role="assistant", content="a"),
        chunk(index=1, role="assistant", content="b"),
        chunk("stop", index=1),
    ]
    out = repaired(stream, request={"n": 2})
    assert [(one["choices"][0]["index"], one["choices"][0]["finish_reason"]) for one in out.events] == [
        (0, "stop"), (1, None), (1, "stop"),
    ]  # fmt: skip


@pytest.mark.parametrize(("pieces", "reason"), [([HI], "stop"), ([CALL], "tool_calls")])
def test_a_missing_reason_is_told_where_the_provider_leaves_it_out(pieces: list[Any], reason: str) -> None:
    provider = repair_with(finish_reason={"missing": "stop"})
    assert repaired([ROLE, *pieces], provider).finish[0] == [reason]
    assert repaired([ROLE, *pieces], provider, done=False).finish == {}
    assert repaired([ROLE, *pieces]).finish == {}


def test_words_are_read_the_same_everywhere() -> None:
    rules = FinishReasons({"repetition": "stop", "abort": "error"})
    assert [rules.read(word) for word in ("repetition", "abort", None, 5)] == ["stop", FAILED, None, None]
