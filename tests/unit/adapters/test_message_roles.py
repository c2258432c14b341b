"""Who speaks: roles and names that a target lacks, and reasoning that goes back to it."""

from __future__ import annotations

import pytest

from tests.fakes.prepared import HELLO
from tests.unit.adapters.messages import said, sent_to


def test_the_developer_is_the_system_where_there_is_no_such_role() -> None:
    for provider in ("together", "fireworks", "tgi", "mlx_lm"):
        sent = sent_to(provider, said("Be brief.", "developer"), HELLO)
        assert (sent.body["messages"], sent.told) == ([said("Be brief.", "system"), HELLO], ["messages.role=mapped"])


def test_a_models_own_role_stays() -> None:
    first = said("Be brief.", "developer")
    assert sent_to("cerebras", first, HELLO, model="gpt-oss-120b").body["messages"] == [first, HELLO]
    assert sent_to("cerebras", first, HELLO, model="qwen-3.8-27b").body["messages"][0]["role"] == "system"


def test_instructions_and_developer_become_one_system_message() -> None:
    sent = sent_to("vllm", said("a", "system"), said([{"type": "text", "text": "b"}], "developer"), HELLO)
    joined = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert sent.body["messages"] == [said(joined, "system"), HELLO]
    plain = sent_to("together", said("a", "system"), said("b", "developer"), HELLO)
    assert plain.body["messages"] == [said("a\n\nb", "system"), HELLO]


def test_a_template_with_one_system_message_gets_one() -> None:
    sent = sent_to("vllm", HELLO, said("late", "system"), model="Qwen/Qwen3.5-9B")
    assert sent.body["messages"] == [said("late", "system"), HELLO]
    assert sent.told == ["messages.content=rewritten"]


def test_a_name_is_left_out_where_it_is_refused() -> None:
    sent = sent_to("together", said("s", "system", name="sys"), said("hi", name="Ann"), said("ho", name="Bob"))
    assert sent.body["messages"] == [said("s", "system"), said("hi"), said("ho")]
    assert sent.told == ["messages.name=dropped"]


def test_who_speaks_goes_in_front_of_what_is_said_where_several_do() -> None:
    sent = sent_to("groq", said("hi", name="Ann"), said("ho", name="Bob"), said("x", "assistant", name="Ai"))
    assert sent.body["messages"] == [said("Ann: hi"), said("Bob: ho"), said("x", "assistant")]
    assert sent.told == ["messages.name=rewritten", "messages.name=dropped"]
    assert sent_to("groq", said("hi", name="Ann")).body["messages"] == [said("hi")]


@pytest.mark.parametrize(
    ("provider", "given_in", "sent_in"),
    [
        ("groq", "reasoning_content", "reasoning"),
        ("cerebras", "reasoning_content", "reasoning"),
        ("fireworks", "reasoning", "reasoning_content"),
        ("fireworks", "reasoning_content", "reasoning_content"),
        ("together", "reasoning", "reasoning"),
        ("vllm", "reasoning_content", "reasoning_content"),
        ("sglang", "reasoning", "reasoning_content"),
        ("tgi", "reasoning", None),
    ],
)
def test_reasoning_goes_back_in_the_field_the_provider_knows(provider: str, given_in: str, sent_in: str | None) -> None:
    sent = sent_to(provider, HELLO, said("x", "assistant", **{given_in: "hm"}), HELLO)
    assert sent.body["messages"][1] == said("x", "assistant", **({sent_in: "hm"} if sent_in else {}))
    action = "dropped" if sent_in is None else "renamed" if sent_in != given_in else None
    assert sent.told == ([f"messages.reasoning={action}"] if action else [])


def test_reasoning_that_nobody_else_can_read_is_dropped() -> None:
    blocks = [{"type": "thinking", "thinking": "hm", "signature": "s"}]
    sent = sent_to("groq", HELLO, said("x", "assistant", thinking_blocks=blocks), HELLO)
    assert (sent.body["messages"][1], sent.told) == (said("x", "assistant"), ["messages.reasoning=dropped"])


def test_a_model_may_want_its_reasoning_in_tags() -> None:
    sent = sent_to("cerebras", HELLO, said("x", "assistant", reasoning="hm"), HELLO, model="zai-glm-4.7")
    assert sent.body["messages"][1] == said("<think>hm</think>x", "assistant")
