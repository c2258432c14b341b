"""Tools, how they may be called, and what may not stand beside them."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.draft import Unsupported
from adapters.errors import ProviderError
from adapters.types import FailureKind
from tests.fakes.prepared import adapter_of, sent_by


def tool(name: str = "f", **function: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, **function}}


def named(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


@pytest.mark.parametrize("provider", ["openai_compatible", "vllm", "groq", "local"])
@pytest.mark.parametrize("choice", [{}, {"tool_choice": "auto"}, {"tool_choice": "none", "parallel_tool_calls": True}])
@pytest.mark.parametrize("tools", [{}, {"tools": []}, {"tools": None}])
def test_without_tools_nothing_is_said_about_them(provider: str, choice: dict[str, Any], tools: dict[str, Any]) -> None:
    sent = sent_by(adapter_of(provider), **tools, **choice)
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & sent.body.keys()
    assert sent.told == []


@pytest.mark.parametrize("choice", ["required", named("f")])
def test_a_call_cannot_be_demanded_without_tools(choice: Any) -> None:
    with pytest.raises(ProviderError) as refusal:
        sent_by(adapter_of("openai_compatible"), tool_choice=choice, tools=[])
    assert (refusal.value.kind, refusal.value.param) == (FailureKind.BAD_REQUEST, "tool_choice")


def test_a_named_tool_becomes_the_only_one_where_names_are_not_known() -> None:
    sent = sent_by(adapter_of("lm_studio"), tools=[tool("a"), tool("b")], tool_choice=named("b"))
    assert (sent.body["tools"], sent.body["tool_choice"]) == ([tool("b")], "required")
    assert (sent.told, sent.lossy) == (["tool_choice=emulated"], False)


def test_a_tool_that_is_not_there_cannot_be_demanded() -> None:
    with pytest.raises(ProviderError) as refusal:
        sent_by(adapter_of("lm_studio"), tools=[tool("a")], tool_choice=named("b"))
    assert refusal.value.kind is FailureKind.BAD_REQUEST


def test_any_call_is_what_others_call_required() -> None:
    sent = sent_by(adapter_of("groq"), tools=[tool()], tool_choice="any")
    assert (sent.body["tool_choice"], sent.told) == ("required", ["tool_choice=mapped"])
    assert sent_by(adapter_of("fireworks"), tools=[tool()], tool_choice="any").body["tool_choice"] == "any"


def test_a_choice_among_some_tools_becomes_the_list_of_tools() -> None:
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [named("b")]}}
    sent = sent_by(adapter_of("groq"), tools=[tool("a"), tool("b")], tool_choice=choice)
    assert (sent.body["tools"], sent.body["tool_choice"]) == ([tool("b")], "required")


def test_no_call_is_what_happens_without_tools() -> None:
    rejected = {"tool_choice": {"support": "limited", "values": ["auto"]}}
    sent = sent_by(adapter_of("openai_compatible", params=rejected), tools=[tool()], tool_choice="none")
    assert not {"tools", "tool_choice"} & sent.body.keys()


@pytest.mark.parametrize("word", [Unsupported.AUTO, Unsupported.REJECT])
def test_tools_are_refused_where_there_are_none(word: Unsupported) -> None:
    without = adapter_of("openai_compatible", params={"tools": {"support": "rejected", "hint": "Use another."}})
    with pytest.raises(ProviderError, match=r"'tools' is not supported by acme\. Use another\."):
        sent_by(without, unsupported=word, tools=[tool()])
    dropped = sent_by(without, unsupported=Unsupported.DROP, tools=[tool()], tool_choice="auto")
    assert (dropped.told, "tool_choice" in dropped.body) == (["tools=dropped"], False)
    assert sent_by(without, tools=[tool()], tool_choice="none").told == []


def test_more_tools_than_a_provider_takes_are_refused() -> None:
    assert sent_by(adapter_of("groq"), tools=[tool(f"f{n}") for n in range(128)]).told == []
    with pytest.raises(ProviderError, match="at most 128"):
        sent_by(adapter_of("groq"), tools=[tool(f"f{n}") for n in range(129)])


def test_tools_go_without_what_the_provider_does_not_know() -> None:
    parameters = {
        "type": "object",
        "properties": {"definitions": {"$ref": "#/definitions/d"}},
        "definitions": {"d": {"type": "string"}},
    }
    given = {**tool("f", description="d", parameters=parameters, strict=True), "cache_control": {"type": "ephemeral"}}
    sent = sent_by(adapter_of("fireworks"), tools=[given])
    (cleaned,) = sent.body["tools"]
    assert cleaned.keys() == {"type", "function"}
    assert cleaned["function"].keys() == {"name", "description", "parameters"}
    assert cleaned["function"]["parameters"] == {
        "type": "object",
        "properties": {"definitions": {"$ref": "#/$defs/d"}},
        "$defs": {"d": {"type": "string"}},
    }
    assert sent.told == ["tools=rewritten"]


@pytest.mark.parametrize(
    ("strict", "sent"), [((True, None), (None, None)), ((True, True), (True, True)), ((None, False), (None, False))]
)
def test_tools_are_strict_all_or_none_where_they_have_to_be_alike(
    strict: tuple[Any, ...], sent: tuple[Any, ...]
) -> None:
    given = [tool(f"f{number}", **({} if one is None else {"strict": one})) for number, one in enumerate(strict)]
    functions = [one["function"] for one in sent_by(adapter_of("cerebras"), tools=given).body["tools"]]
    assert tuple(function.get("strict") for function in functions) == sent


def test_one_call_is_kept_where_several_come_whatever_is_said() -> None:
    sent = sent_by(adapter_of("ollama"), tools=[tool()], parallel_tool_calls=False)
    assert ("parallel_tool_calls" in sent.body, sent.told) == (False, ["parallel_tool_calls=emulated"])
    assert sent.needs is not None
    assert sent.needs.one_call
    assert sent_by(adapter_of("ollama"), tools=[tool()], parallel_tool_calls=True).needs is None
    assert sent_by(adapter_of("groq"), tools=[tool()], parallel_tool_calls=False).body["parallel_tool_calls"] is False


def test_of_two_that_exclude_each_other_one_is_sent() -> None:
    sent = sent_by(adapter_of("groq"), include_reasoning=True, reasoning_format="hidden")
    assert (sent.body["reasoning_format"], "include_reasoning" in sent.body) == ("hidden", False)
    assert sent.told == ["include_reasoning=dropped"]
    assert sent_by(adapter_of("groq"), include_reasoning=True).told == []


def test_raw_reasoning_is_parsed_beside_tools() -> None:
    sent = sent_by(adapter_of("groq"), reasoning_format="raw", tools=[tool()])
    assert (sent.body["reasoning_format"], sent.told) == ("parsed", ["reasoning_format=mapped"])
    assert sent_by(adapter_of("groq"), reasoning_format="raw").body["reasoning_format"] == "raw"


def test_a_switch_in_quotes_becomes_a_switch() -> None:
    sent = sent_by(adapter_of("llama_cpp_server"), chat_template_kwargs={"enable_thinking": "false", "x": "true"})
    assert sent.body["chat_template_kwargs"] == {"enable_thinking": False, "x": "true"}
    assert sent.told == ["chat_template_kwargs=rewritten"]


def test_a_forced_call_switches_thinking_off_where_the_two_exclude_each_other() -> None:
    model = "deepseek-ai/DeepSeek-V4-Pro-0813"
    sent = sent_by(adapter_of("together", model), tools=[tool()], tool_choice="required", reasoning_effort="high")
    assert (sent.body["reasoning"], "reasoning_effort" in sent.body) == ({"enabled": False}, False)
    assert "reasoning=rewritten" in sent.told
    free = sent_by(adapter_of("together", model), tools=[tool()], tool_choice="auto")
    assert "reasoning" not in free.body
