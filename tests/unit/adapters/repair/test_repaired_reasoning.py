"""Reasoning in a stream: under one name, and found between tags in whatever pieces they come."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.repair.thinking import Opening, ThinkSplitter
from tests.fakes.repaired import ROLE, STOP, call, chunk, repair_with, repaired, repaired_text

TAGS = {"<think>": "</think>"}


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
    out = repaired_text(text, size)
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
    assert repaired_text("<think>a</think>b", provider="groq").said[:2] == ("<think>a</think>b", "")


def test_a_tag_that_the_prompt_opened_need_not_be_in_the_text() -> None:
    opened = repair_with(reasoning={"opens_in_prompt": True})
    for size in (1, 4, 100):
        assert repaired_text("hm\n</think>\nHi", size, opened).said[:2] == ("Hi", "hm")
        assert repaired_text("<think>hm</think>Hi", size, opened).said[:2] == ("Hi", "hm")


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
