"""What messages hold: members and parts that a target does not know are left out, said otherwise or refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from adapters.errors import ProviderError
from adapters.types import FailureKind, Operation
from tests.fakes.prepared import HELLO, adapter_of, one, sent_by
from tests.unit.adapters.messages import TOOLS, call, calling, result, said, sent_to

# Members

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


def test_a_function_is_a_tool_by_now() -> None:
    sent = sent_to(
        "cerebras",
        HELLO,
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "4"},
    )
    assert sent.body["messages"] == [HELLO, calling(call("call_00001")), result("call_00001")]
    assert sent.told == ["messages.tool_calls=rewritten", "messages.role=mapped"]


# Parts


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
