"""Past calls of tools: their arguments are the text of an object, and each result says whose it is."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from adapters.errors import ProviderError
from adapters.types import Operation
from tests.fakes.prepared import adapter_of, body_of

USER = {"role": "user", "content": "Weather?"}
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}


def call(arguments: Any, **members: Any) -> dict[str, Any]:
    return {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": arguments}, **members}


def sent(*messages: dict[str, Any], provider: str = "vllm") -> list[dict[str, Any]]:
    body = body_of(messages=list(messages), tools=[TOOL])
    made: list[dict[str, Any]] = json.loads(adapter_of(provider).prepare(body, Operation.CHAT, False).body)["messages"]
    return made


CUT = '{"command": "mkdir -p /tmp/mmadtest && cat > /tmp'
ARGUMENTS: list[Any] = [
    # As they came, and as they are sent.
    pytest.param('{"city": "Oslo"}', {"city": "Oslo"}, id="sound"),
    pytest.param("", {}, id="empty"),
    pytest.param("null", {}, id="null"),
    pytest.param(CUT, {"unreadable_arguments": CUT}, id="vllm-project/vllm#47761"),
    pytest.param('{"a": 1}}', {"unreadable_arguments": '{"a": 1}}'}, id="too much"),
    pytest.param('{"a": "\\e"}', {"unreadable_arguments": '{"a": "\\e"}'}, id="huggingface/physics-intern#6"),
    pytest.param("[1]", {"unreadable_arguments": [1]}, id="a list"),
    pytest.param('"{\\"city\\": \\"Oslo\\"}"', {"city": "Oslo"}, id="wrapped twice"),
    pytest.param('{"text": "two\nlines"}', {"text": "two\nlines"}, id="line breaks"),
    pytest.param({"city": "Oslo"}, {"city": "Oslo"}, id="an object"),
]


@pytest.mark.parametrize("provider", ["vllm", "openai_compatible", "groq", "llama_cpp_server"])
@pytest.mark.parametrize(("given", "expected"), ARGUMENTS)
def test_arguments_of_past_calls_are_the_text_of_an_object(given: Any, expected: Any, provider: str) -> None:
    made = sent(USER, {"role": "assistant", "content": "", "tool_calls": [call(given)]},
                {"role": "tool", "tool_call_id": "call_1", "content": "4"}, provider=provider)  # fmt: skip
    assert json.loads(made[1]["tool_calls"][0]["function"]["arguments"]) == expected


def test_sound_arguments_are_the_same_bytes() -> None:
    text = '{ "a" : NaN,\n "b": "{" }'
    made = sent(USER, {"role": "assistant", "content": "", "tool_calls": [call(text)]})
    assert made[1]["tool_calls"][0]["function"]["arguments"] == text


def test_results_without_an_id_are_of_the_calls_in_their_order() -> None:
    calls = [{"type": "function", "function": {"name": name, "arguments": "{}"}} for name in ("look", "hear", "look")]
    made = sent(
        USER,
        {"role": "assistant", "content": "", "tool_calls": calls},
        {"role": "tool", "name": "hear", "content": "noise"},
        {"role": "tool", "content": "one"},
        {"role": "tool", "content": "two"},
    )
    ids = [one["id"] for one in made[1]["tool_calls"]]
    assert len(set(ids)) == 3
    assert [one["tool_call_id"] for one in made[2:]] == [ids[1], ids[0], ids[2]]


def test_ids_that_are_there_stay() -> None:
    made = sent(
        USER,
        {"role": "assistant", "content": "", "tool_calls": [call("{}"), call("{}", id="call_2")]},
        {"role": "tool", "tool_call_id": "call_2", "content": "two"},
        {"role": "tool", "content": "one"},
    )
    assert [one["tool_call_id"] for one in made[2:]] == ["call_2", "call_1"]


@pytest.mark.parametrize("role", ["user", "system", "developer"])
@pytest.mark.parametrize("members", [{}, {"content": None}])
def test_who_speaks_has_to_say_something(role: str, members: dict[str, Any]) -> None:
    """OpenAI: "Invalid value for 'content': expected a string, got null."; templates write None or fail."""
    body = body_of(messages=[{"role": role, **members}])
    with pytest.raises(ProviderError) as refused:
        adapter_of("vllm").prepare(body, Operation.CHAT, False)
    assert refused.value.param == "messages[0].content"


def test_no_functions_are_no_tools_where_functions_are_taken() -> None:
    """Groq takes functions as they are, but not a list without any."""
    body = {**body_of(messages=[USER], function_call="none"), "functions": msgspec.Raw(b"[]")}
    made = json.loads(adapter_of("groq").prepare(body, Operation.CHAT, False).body)
    assert not {"functions", "function_call"} & made.keys()


@pytest.mark.parametrize(
    "part",
    ["hi", {"type": "input_text", "text": "hi"}, {"type": "output_text", "text": "hi", "annotations": []}],
    ids=["BerriAI/litellm#28489", "musistudio/claude-code-router#1427", "an answer given back"],
)
def test_text_in_other_words_is_a_part_of_text(part: Any) -> None:
    assert sent({"role": "user", "content": [part]})[0]["content"] == [{"type": "text", "text": "hi"}]
    assert sent({"role": "system", "content": [part]}, USER, provider="groq")[0]["content"] == "hi"
