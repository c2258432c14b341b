"""Calls and their results: ids in the form and the order that a provider insists on."""

from __future__ import annotations

import re
from typing import Any

from tests.fakes.prepared import HELLO, adapter_of, sent_by
from tests.unit.adapters.messages import TOOLS, call, calling, result, said, sent_to

NINE: dict[str, Any] = {"messages": {"tool_call_ids": "nine_alphanumeric"}}


def test_ids_get_the_form_the_provider_insists_on_the_same_one_for_call_and_result() -> None:
    long, other = "call_PTLP8xhu3uwZk4l3nlnrrJha", "call_QQLP8xhu3uwZk4l3nlnrrJhb"
    history = [
        HELLO,
        calling(call(long), call(other), call("abcdef123")),
        result(other),
        result(long),
        result("abcdef123"),
    ]
    sent = sent_by(adapter_of("openai_compatible", **NINE), messages=history, tools=TOOLS)
    _, calls, *results = sent.body["messages"]
    ids = [made["id"] for made in calls["tool_calls"]]
    assert all(re.fullmatch(r"[A-Za-z0-9]{9}", identifier) for identifier in ids)
    assert [made["tool_call_id"] for made in results] == [ids[1], ids[0], "abcdef123"]
    assert (len(set(ids)), sent.told) == (3, ["messages.tool_call_id=rewritten"])
    again = sent_by(adapter_of("openai_compatible", **NINE), messages=[*history, HELLO], tools=TOOLS)
    assert again.body["messages"][:-1] == sent.body["messages"]


def test_each_call_is_answered_at_once_where_that_is_wanted() -> None:
    sent = sent_to("cerebras", HELLO, calling(call("a"), call("b")), said("wait"), result("a"), tools=TOOLS)
    assert sent.body["messages"] == [HELLO, calling(call("a")), result("a"), said("wait")]
    assert sent.told == ["messages.tool_calls=dropped", "messages=rewritten"]


def test_a_turn_of_unanswered_calls_alone_is_left_out() -> None:
    sent = sent_to("cerebras", HELLO, calling(call("a")), said("never mind"), tools=TOOLS)
    assert sent.body["messages"] == [HELLO, said("never mind")]
    kept = sent_to("cerebras", HELLO, {**calling(call("a")), "content": "I look."}, said("well?"), tools=TOOLS)
    assert kept.body["messages"][1] == said("I look.", "assistant")


def test_a_result_without_a_call_is_something_the_model_is_told() -> None:
    sent = sent_to("cerebras", HELLO, result("lost", "42"))
    assert sent.body["messages"] == [HELLO, said("Result of a tool: 42")]
    assert sent.told == ["messages.role=mapped"]


def test_an_id_that_was_used_before_gets_another_name() -> None:
    turn = [calling(call("a")), result("a")]
    sent = sent_to("cerebras", HELLO, *turn, *turn, tools=TOOLS)
    assert sent.body["messages"] == [HELLO, *turn, calling(call("a_2")), result("a_2")]
    assert sent.told == ["messages.tool_call_id=rewritten"]


def test_calls_in_good_order_go_as_they_came() -> None:
    history = [HELLO, calling(call("a"), call("b")), result("a"), result("b"), said("x", "assistant"), HELLO]
    for provider in ("cerebras", "groq", "vllm"):
        sent = sent_to(provider, *history, tools=TOOLS)
        assert (sent.body["messages"], sent.told) == (history, [])


def test_one_assistant_message_is_left_at_the_end() -> None:
    sent = sent_to("llama_cpp_server", HELLO, said("a", "assistant"), said("b", "assistant"))
    assert sent.body["messages"] == [HELLO, said("a\n\nb", "assistant")]
