"""Messages that a target does not take as they are, and that all others go byte for byte."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.errors import ProviderError
from adapters.message_check import MessageCheck
from adapters.message_facts import message_facts
from adapters.registry import load_spec
from adapters.types import FailureKind, Operation
from tests.fakes.prepared import HELLO, Sent, adapter_of, one, sent_by

Message = dict[str, Any]
TOOLS = [{"type": "function", "function": {"name": "f"}}]


def said(content: Any, role: str = "user", **more: Any) -> Message:
    return {"role": role, "content": content, **more}


def call(identifier: str = "call_1", arguments: Any = "{}", **more: Any) -> Message:
    return {"id": identifier, "type": "function", "function": {"name": "f", "arguments": arguments}, **more}


def calling(*calls: Message, **more: Any) -> Message:
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **more}


def result(identifier: str = "call_1", content: Any = "4") -> Message:
    return {"role": "tool", "tool_call_id": identifier, "content": content}


def sent_to(provider: str, *messages: Message, model: str = "m", tools: Any = None, **overrides: Any) -> Sent:
    # With a limit, so that no target adds its own.
    members = {"max_tokens": 9} | ({"tools": tools} if tools is not None else {})
    return sent_by(adapter_of(provider, model, **overrides), messages=list(messages), **members)


# Nothing to do

PLAIN = (
    b'[ {"role":"system", "content":"s"},{"role" : "user","content":"h\\u00e9"}, {"content":"x","role":"assistant"}]'
)


@pytest.mark.parametrize("provider", ["openai_compatible", "groq", "cerebras", "together", "fireworks", "vllm", "tgi"])
def test_messages_that_need_nothing_go_byte_for_byte(provider: str) -> None:
    prepared = adapter_of(provider).prepare({"messages": msgspec.Raw(PLAIN)}, Operation.CHAT, False)
    assert PLAIN in prepared.body


def test_a_server_that_takes_everything_gets_everything() -> None:
    odd = said("x", name=None, tool_calls=[], cache_control={"type": "ephemeral"}, reasoning="r")
    assert sent_to("openai_compatible", odd).body["messages"] == [odd]


# Members


@pytest.mark.parametrize("name", ["name", "tool_calls", "function_call", "audio", "refusal"])
def test_a_member_without_a_value_is_not_sent(name: str) -> None:
    sent = sent_to("groq", said("s", "system", **one(name, None)), said("hi", **one(name, None)))
    assert (sent.body["messages"], sent.told) == ([said("s", "system"), said("hi")], [])


def test_members_the_provider_does_not_know_are_left_out_wherever_they_stand() -> None:
    part = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}, "extra": 1}
    sent = sent_to(
        "fireworks",
        said([part], cache_control={"type": "ephemeral"}, metadata={"a": 1}),
        calling(call(index=0, provider_specific=1), annotations=[], audio=None),
        result(),
        tools=TOOLS,
    )
    assert sent.body["messages"] == [said([{"type": "text", "text": "x"}]), calling(call()), result()]
    assert sent.told == ["messages.cache_control=dropped", "messages.fields=dropped"]


def test_an_empty_list_of_calls_is_none() -> None:
    for provider in ("together", "groq", "cerebras"):
        sent = sent_to(provider, said("x", "assistant", tool_calls=[]), HELLO)
        assert (sent.body["messages"], sent.told) == ([said("x", "assistant"), HELLO], [])


@pytest.mark.parametrize("provider", ["openai_compatible", "vllm", "groq", "llama_cpp_server"])
@pytest.mark.parametrize("empty", ["", None, {}])
def test_a_call_without_arguments_has_an_empty_object_of_them(provider: str, empty: Any) -> None:
    sent = sent_to(provider, HELLO, calling(call(arguments=empty)), result(), tools=TOOLS)
    assert sent.body["messages"][1]["tool_calls"] == [call(arguments="{}")]
    assert sent.told == ["messages.tool_calls=rewritten"]


def test_the_place_of_a_call_in_a_stream_is_nothing_to_send_back() -> None:
    sent = sent_to("groq", HELLO, calling(call(index=0)), result(), tools=TOOLS)
    assert sent.body["messages"][1] == calling(call())


def test_a_refusal_in_parts_keeps_its_words_or_becomes_text() -> None:
    parts = [{"type": "refusal", "refusal": "No."}]
    for provider in ("openai", "openai_compatible"):
        sent = sent_to(provider, HELLO, said(parts, "assistant"), HELLO)
        assert sent.body["messages"][1]["content"] == parts
    assert "No." in str(sent_to("groq", HELLO, said(parts, "assistant"), HELLO).body["messages"][1])


def test_a_refusal_is_what_the_model_said() -> None:
    sent = sent_to("cerebras", HELLO, said(None, "assistant", refusal="No."), HELLO)
    assert sent.body["messages"][1] == said("No.", "assistant")


# Roles and names


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


def test_a_function_is_a_tool_by_now() -> None:
    sent = sent_to(
        "cerebras",
        HELLO,
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "4"},
    )
    assert sent.body["messages"] == [HELLO, calling(call("call_00001")), result("call_00001")]
    assert sent.told == ["messages.tool_calls=rewritten", "messages.role=mapped"]


# Reasoning of earlier turns


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


# Content


def test_text_parts_become_a_string_where_that_alone_is_known() -> None:
    parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    sent = sent_to("groq", said(parts), messages={"content_as_string": True})
    assert (sent.body["messages"], sent.told) == ([said("one\ntwo")], ["messages.content=rewritten"])
    some = sent_to("openai_compatible", said(parts, "system"), said(parts), messages={"content_as_string": ["system"]})
    assert some.body["messages"] == [said("one\ntwo", "system"), said(parts)]
    image = {"type": "image_url", "image_url": {"url": "data:,"}}
    mixed = sent_to("openai_compatible", said([*parts, image]), messages={"content_as_string": True})
    assert mixed.body["messages"] == [said([*parts, image])]


@pytest.mark.parametrize("kind", ["file", "input_audio", "hologram"])
def test_a_part_the_target_cannot_read_is_refused_by_its_place(kind: str) -> None:
    with pytest.raises(ProviderError) as refusal:
        sent_to("groq", HELLO, said([{"type": "text", "text": "x"}, {"type": kind, kind: {}}]))
    error = refusal.value
    assert (error.kind, error.param) == (FailureKind.UNSUPPORTED_PARAMETER, "messages[1].content[1]")


def test_a_model_that_sees_nothing_gets_no_image() -> None:
    image = said([{"type": "image_url", "image_url": {"url": "data:,"}}])
    assert sent_to("groq", image, model="qwen/qwen3.8-27b").body["messages"] == [image]
    with pytest.raises(ProviderError) as refusal:
        sent_to("groq", image, model="openai/gpt-oss-120b")
    assert "'image_url'" in refusal.value.message


def test_what_is_no_message_is_refused() -> None:
    with pytest.raises(ProviderError) as refusal:
        sent_by(adapter_of("groq"), messages=[HELLO, "hi"])
    assert (refusal.value.kind, refusal.value.param) == (FailureKind.BAD_REQUEST, "messages[1]")


# Ids of calls

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


# Order


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


# For all messages

TEXT = st.text(alphabet='ab é"\\\n', max_size=5)
VALUES: st.SearchStrategy[Any] = st.none() | TEXT | st.just([]) | st.just({}) | st.integers(0, 3)
CALLS = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.sampled_from(["a", "b", "long_enough_1"]),
            "function": st.fixed_dictionaries({"name": st.just("f"), "arguments": st.sampled_from(["", "{}", None])}),
        },
        optional={"type": st.just("function"), "index": st.integers(0, 2), "extra": VALUES},
    ),
    max_size=2,
)
PARTS = st.lists(
    st.fixed_dictionaries(
        {"type": st.just("text"), "text": TEXT}, optional={"cache_control": VALUES, "annotations": VALUES}
    ),
    min_size=1,
    max_size=2,
)
MORE = {
    "name": st.none() | st.sampled_from(["Ann", "Bob"]), "reasoning": st.none() | TEXT, "cache_control": VALUES,
    "reasoning_content": st.none() | TEXT, "refusal": st.none() | TEXT, "annotations": VALUES, "audio": VALUES,
}  # fmt: skip
MESSAGES = st.lists(
    st.one_of(
        st.fixed_dictionaries(
            {"role": st.sampled_from(["system", "developer", "user"]), "content": TEXT | PARTS}, optional=MORE
        ),
        st.fixed_dictionaries({"role": st.just("assistant"), "content": TEXT}, optional={**MORE, "tool_calls": CALLS}),
        st.fixed_dictionaries(
            {"role": st.just("tool"), "content": TEXT, "tool_call_id": st.sampled_from(["a", "b", "long_enough_1"])}
        ),
    ),
    min_size=1,
    max_size=6,
)  # fmt: skip


@pytest.mark.parametrize("provider", ["groq", "cerebras", "together", "fireworks", "vllm", "tgi", "llama_cpp_python"])
@settings(max_examples=60, deadline=None)
@given(messages=MESSAGES)
def test_what_was_rewritten_needs_no_rewriting(provider: str, messages: list[Message]) -> None:
    adapter = adapter_of(provider)
    once = sent_by(adapter, messages=messages, tools=TOOLS)
    twice = sent_by(adapter, messages=once.body["messages"], tools=TOOLS)
    assert twice.body["messages"] == once.body["messages"]
    spec = load_spec(provider)
    check = MessageCheck(message_facts(spec, "acme", spec.canonical("m")))
    assert check.read(msgspec.Raw(json.dumps(once.body["messages"]).encode())) is not None
