"""Text of a stream: reasoning under one name, tags and stops found in whatever pieces they come."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.draft import AnswerNeeds
from adapters.repair.stops import StopWatch
from adapters.repair.thinking import Opening, ThinkSplitter
from adapters.types import Operation
from tests.fakes.repaired import (
    MEMBERS,
    ROLE,
    STOP,
    Heard,
    call,
    chunk,
    event_of,
    repair_with,
    repaired,
    repaired_events,
)

TAGS = {"<think>": "</think>"}


def in_pieces(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def heard(text: str, size: int = 10_000, provider: Any = "vllm", **options: Any) -> Heard:
    return repaired([ROLE, *(chunk(content=piece) for piece in in_pieces(text, size)), STOP], provider, **options)


# Reasoning in a field


@pytest.mark.parametrize(
    ("delta", "provider"),
    [
        ({"reasoning_content": "hm"}, "openai_compatible"),
        ({"reasoning": "hm"}, "vllm"),
        ({"reasoning": "hm"}, "openai_compatible"),
        ({"reasoning": "hm", "reasoning_content": None}, "groq"),
        ({"reasoning": "hm", "reasoning_content": "hm"}, "openai_compatible"),
        ({"reasoning": "hm", "content": None}, "cerebras"),
        ({"thoughts": "hm"}, repair_with(reasoning={"stream_field": "delta.thoughts"})),
    ],
)
def test_reasoning_has_one_name(delta: dict[str, Any], provider: Any) -> None:
    """BerriAI/litellm#20246, strands-agents/harness-sdk#2191."""
    out = repaired([ROLE, chunk(**delta), chunk(content="Hi"), STOP], provider)
    assert out.said == ("Hi", "hm", [], ["stop"])
    assert not {"reasoning", "thoughts"} & set(out.events[1]["choices"][0]["delta"])


def test_reasoning_and_text_of_one_event_are_both_kept() -> None:
    assert repaired([ROLE, chunk(content="Hi", reasoning="hm"), STOP]).said == ("Hi", "hm", [], ["stop"])


def test_content_in_parts_becomes_text_and_reasoning() -> None:
    """As magistral sends it (Mistral docs, page Reasoning, read 2026-11-30): lists of thinking and text parts."""
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "Hi"}]
    out = repaired([ROLE, chunk(content=parts), chunk(content=" you"), STOP])
    assert out.said == ("Hi you", "hm", [], ["stop"])


# Reasoning between tags

TAGGED: list[Any] = [
    pytest.param("<think>hm</think>Hi", ("hm", "Hi"), id="plain"),
    pytest.param("<think>\nhm, well\n</think>\n\nHi <b>", ("hm, well", "Hi <b>"), id="blanks"),
    pytest.param("\n <think>hm</think>Hi", ("hm", "Hi"), id="blanks-before"),
    pytest.param("<think></think>Hi", ("", "Hi"), id="empty"),
    pytest.param("<think>never closed </thin", ("never closed </thin", ""), id="never-closed"),
    pytest.param("<think>hm</think>", ("hm", ""), id="nothing-else"),
    pytest.param("<think>a </b> < / </thi nk></think>Hi", ("a </b> < / </thi nk>", "Hi"), id="nearly-a-tag"),
    pytest.param("</think>\n\nHi", ("", "Hi"), id="closing-alone: aula-id/koma#63"),
    pytest.param("Hi <think>literal</think>", ("", "Hi <think>literal</think>"), id="later-it-is-text"),
    pytest.param("<think>a</think>b<think>c</think>", ("a", "b<think>c</think>"), id="only-the-first"),
    pytest.param("<thinking>a", ("", "<thinking>a"), id="another-tag"),
    pytest.param("<", ("", "<"), id="a-beginning-and-no-more"),
    pytest.param("\n", ("", "\n"), id="blank"),
    pytest.param("<think>ü😀</think>é", ("ü😀", "é"), id="not-ascii"),
]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 10_000])
@pytest.mark.parametrize(("text", "parted"), TAGGED)
def test_tags_are_found_wherever_the_text_is_cut(text: str, parted: tuple[str, str], size: int) -> None:
    """Cut tags leak in NVIDIA-NeMo/Guardrails#1843, vinhnx/VTCode#247 and linshenkx/prompt-optimizer#348."""
    out = heard(text, size)
    assert (out.reasoning[0], out.content[0]) == parted
    assert out.finish[0] == ["stop"]


def test_a_finish_reason_on_the_last_piece_loses_nothing() -> None:
    out = repaired([ROLE, chunk(content="<think>hm</thi"), chunk("stop", content="nk>Hi")], "vllm")
    assert out.said == ("Hi", "hm", [], ["stop"])


def test_the_first_event_may_bring_role_and_tag_together() -> None:
    out = repaired([chunk(role="assistant", content="<th"), chunk(content="ink>hm</think>Hi"), STOP], "vllm")
    assert (out.said, out.roles[0]) == (("Hi", "hm", [], ["stop"]), "assistant")


def test_calls_after_tags_are_calls() -> None:
    pieces = [
        chunk(content="<think>hm</think>"),
        chunk(tool_calls=[call(0, "{}", "get_time", id="x", type="function")]),
    ]
    assert repaired([ROLE, *pieces, chunk("tool_calls")], "vllm").said == (
        "",
        "hm",
        [("get_time", "{}")],
        ["tool_calls"],
    )


def test_tags_are_text_for_a_model_that_has_none() -> None:
    """Groq's file names the qwen family alone; the model here is another."""
    assert heard("<think>a</think>b", provider="groq").said[:2] == ("<think>a</think>b", "")


def test_a_tag_that_the_prompt_opened_need_not_be_in_the_text() -> None:
    opened = repair_with(reasoning={"opens_in_prompt": True})
    for size in (1, 4, 100):
        assert heard("hm\n</think>\nHi", size, opened).said[:2] == ("Hi", "hm")
        assert heard("<think>hm</think>Hi", size, opened).said[:2] == ("Hi", "hm")


@given(st.text("<think>/ ab\n", max_size=30), st.lists(st.integers(0, 30), max_size=6))
@settings(max_examples=300, deadline=None)
def test_any_pieces_give_the_same_parts(text: str, places: list[int]) -> None:
    def parted(pieces: list[str]) -> tuple[str, str]:
        splitter, parts = ThinkSplitter(TAGS), [("", "")]
        for piece in pieces:
            parts.append(splitter.feed(piece))
            if splitter.state is Opening.PLAIN:
                parts.append(("", splitter.release()))
        parts.append(splitter.end())
        return "".join(part[0] for part in parts), "".join(part[1] for part in parts)

    edges = [0, *sorted({place % (len(text) + 1) for place in places}), len(text)]
    pieces = [text[start:end] for start, end in itertools.pairwise(edges)]
    assert parted(pieces) == parted([text])


# Stops

STOPPED: list[Any] = [
    pytest.param(("END",), "one END two", "one ", id="one"),
    pytest.param(("END",), "one EN", "one EN", id="nearly"),
    pytest.param(("b", "cd"), "abcd", "a", id="the-first-that-is-complete"),
    pytest.param(("abcd", "bc"), "xabcd", "xa", id="not-the-one-that-began-first"),
    pytest.param(("aab",), "aaab", "a", id="overlapping-itself"),
    pytest.param(("\n\n",), "a\nb\n\nc", "a\nb", id="line-ends"),
    pytest.param(("é",), "caféx", "caf", id="not-ascii"),
    pytest.param(("END",), "END", "", id="at-once"),
]


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize(("stops", "text", "kept"), STOPPED)
def test_text_ends_before_a_stop(stops: tuple[str, ...], text: str, kept: str, size: int) -> None:
    out = heard(text, size, needs=AnswerNeeds(stops=stops))
    assert (out.content[0], out.finish[0]) == (kept, ["stop"])


def test_a_stop_in_the_reasoning_is_none() -> None:
    out = heard("<think>END</think>a END b", 3, needs=AnswerNeeds(stops=("END",)))
    assert out.said == ("a ", "END", [], ["stop"])


def test_each_choice_has_its_own_stops() -> None:
    needs = AnswerNeeds(stops=("END",))
    stream = [ROLE, chunk(index=1, role="assistant", content="b"), chunk(content="aEN"), chunk(index=1, content=" EN"),
              chunk(content="D!"), chunk(index=1, content="d"), chunk("length", index=1)]  # fmt: skip
    out = repaired(stream, needs=needs, request={"n": 2})
    assert (out.content, out.finish) == ({0: "a", 1: "b ENd"}, {0: ["stop"], 1: ["length"]})


def test_after_the_last_stop_the_stream_is_over() -> None:
    events = [event_of(one) for one in (ROLE, chunk(content="a END b"), chunk(content="c"), STOP)]
    out = repaired_events(events, needs=AnswerNeeds(stops=("END",)))
    assert [one.finish_reasons for one in out] == [(), ((0, "stop"),)]


def logprob(token: str) -> dict[str, Any]:
    return {"token": token, "logprob": -0.5, "bytes": list(token.encode()), "top_logprobs": []}


@pytest.mark.parametrize("size", [1, 2, 4])
def test_log_probabilities_are_cut_with_the_text(size: int) -> None:
    tokens = ["a", "b", "E", "N", "D", "c"]
    pieces = []
    for at in range(0, len(tokens), size):
        piece = chunk(content="".join(tokens[at : at + size]))
        piece["choices"][0]["logprobs"] = {"content": [logprob(one) for one in tokens[at : at + size]], "refusal": None}
        pieces.append(piece)
    out = repaired([ROLE, *pieces, STOP], needs=AnswerNeeds(stops=("END",)))
    assert out.content[0] == "ab"
    assert [one["token"] for one in out.logprobs[0]] == ["a", "b"]


def test_held_text_keeps_its_log_probabilities() -> None:
    pieces = []
    for token in ("a", "E", "N", "x"):
        piece = chunk(content=token)
        piece["choices"][0]["logprobs"] = {"content": [logprob(token)], "refusal": None}
        pieces.append(piece)
    out = repaired([ROLE, *pieces, STOP], needs=AnswerNeeds(stops=("END",)))
    assert [one["token"] for one in out.logprobs[0]] == ["a", "E", "N", "x"]


@pytest.mark.parametrize("odd", [[None], ["a"], "xy", {"a": 1}, 5])
def test_log_probabilities_that_are_none_do_not_stop_the_text(odd: Any) -> None:
    piece = chunk(content="a")
    piece["choices"][0]["logprobs"] = {"content": odd, "refusal": None}
    out = repaired([ROLE, piece, STOP], needs=AnswerNeeds(stops=("END",)))
    assert (out.content[0], out.logprobs[0]) == ("a", [])


@given(st.text("abE ND", max_size=25), st.lists(st.text("abE ND", min_size=1, max_size=4), min_size=1, max_size=3),
       st.lists(st.integers(0, 25), max_size=5))  # fmt: skip
@settings(max_examples=300, deadline=None)
def test_any_pieces_end_at_the_same_place(text: str, stops: list[str], places: list[int]) -> None:
    def kept(pieces: list[str]) -> str:
        watch = StopWatch(stops)
        said = "".join(watch.feed(piece) for piece in pieces if piece)
        return said + ("" if watch.hit else watch.end())

    edges = [0, *sorted({place % (len(text) + 1) for place in places}), len(text)]
    pieces = [text[start:end] for start, end in itertools.pairwise(edges)]
    result = kept(pieces)
    assert result == kept([text])
    assert text.startswith(result)
    assert not any(stop in result for stop in stops)
    assert result == text or any(text[len(result) :].startswith(stop) for stop in stops)


# Text completions


def text_chunk(text: Any, finish: Any = None, **members: Any) -> dict[str, Any]:
    choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": finish, **members}
    return {**MEMBERS, "object": "text_completion", "choices": [choice]}


def text_events(*payloads: Any, **options: Any) -> list[Any]:
    events = repaired_events([event_of(one) for one in payloads], operation=Operation.COMPLETIONS, **options)
    return [json.loads(one.data)["choices"][0] for one in events]


def test_text_is_never_null() -> None:
    choices = text_events(text_chunk("a"), text_chunk(None, "eos"))
    assert [(one["text"], one["finish_reason"]) for one in choices] == [("a", None), ("", "stop")]


def test_text_completions_end_at_stops_with_their_log_probabilities() -> None:
    def columns(*tokens: str) -> dict[str, Any]:
        return {
            "tokens": list(tokens),
            "token_logprobs": [-1.0] * len(tokens),
            "top_logprobs": None,
            "text_offset": [0],
        }

    pieces = [text_chunk("a EN", logprobs=columns("a", " ", "EN")), text_chunk("D b", logprobs=columns("D", " b"))]
    choices = text_events(*pieces, needs=AnswerNeeds(stops=("END",)))
    assert "".join(one["text"] for one in choices) == "a "
    assert [token for one in choices for token in (one["logprobs"] or {}).get("tokens", ())] == ["a", " "]
    assert choices[-1]["finish_reason"] == "stop"


def test_log_probabilities_may_come_with_other_columns_later() -> None:
    full = {"tokens": ["a", "E"], "token_logprobs": [-1.0, -2.0]}
    pieces = [text_chunk("aE", logprobs=full), text_chunk("c", logprobs={"tokens": ["c"]})]
    choices = text_events(*pieces, needs=AnswerNeeds(stops=("END",)))
    assert "".join(one["text"] for one in choices) == "aEc"
    told = [one["logprobs"] for one in choices if one["logprobs"]]
    assert [token for one in told for token in one["tokens"]] == ["a", "E", "c"]
    assert told[-1]["token_logprobs"] == [-2.0, None]


def test_tags_in_a_text_completion_are_text() -> None:
    choices = text_events(text_chunk("<think>a"), text_chunk("</think>", "stop"), provider="vllm")
    assert "".join(one["text"] for one in choices) == "<think>a</think>"
