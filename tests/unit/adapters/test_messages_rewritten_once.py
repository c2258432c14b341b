"""Whatever the messages: what was rewritten once needs no rewriting."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.message_check import MessageCheck
from adapters.message_facts import message_facts
from adapters.registry import load_spec
from tests.fakes.prepared import adapter_of, sent_by
from tests.unit.adapters.messages import TOOLS, Message

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
