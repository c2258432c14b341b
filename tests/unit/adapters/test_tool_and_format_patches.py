"""Tools, how they may be called, log probabilities, forms of an answer, and combinations that do not go together."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema_rs import validator_for

from adapters.draft import Unsupported
from adapters.errors import ProviderError
from adapters.schema_dialect import rewrite
from adapters.spec_request import DialectSpec
from adapters.tool_patches import with_defs
from adapters.types import FailureKind, Operation
from tests.fakes.prepared import adapter_of, sent_by


def tool(name: str = "f", **function: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, **function}}


def named(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


# Tools


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


# Log probabilities


@pytest.mark.parametrize(
    ("given", "count", "wanted"),
    [
        ({"logprobs": True}, 1, 0),
        ({"logprobs": True, "top_logprobs": 0}, 1, 0),
        ({"logprobs": True, "top_logprobs": 3}, 3, 3),
        ({"logprobs": 4}, 4, 4),
        ({"top_logprobs": 2}, 2, 2),
    ],
)
def test_flag_and_number_become_a_count(given: dict[str, Any], count: int, wanted: int) -> None:
    sent = sent_by(adapter_of("together"), **given)
    assert (sent.body["logprobs"], "top_logprobs" in sent.body) == (count, False)
    assert sent.needs is not None
    assert (sent.needs.logprobs, sent.needs.top_logprobs) == (True, wanted)


@pytest.mark.parametrize("off", [{"logprobs": False}, {"logprobs": 0}, {"logprobs": None}, {"top_logprobs": 0}])
def test_no_log_probabilities_are_none(off: dict[str, Any]) -> None:
    for provider in ("together", "groq"):
        sent = sent_by(adapter_of(provider), **off)
        assert ("logprobs" in sent.body, sent.told, sent.needs) == (False, [], None)


def test_a_count_becomes_flag_and_number() -> None:
    sent = sent_by(adapter_of("cerebras"), logprobs=3)
    assert (sent.body["logprobs"], sent.body["top_logprobs"]) == (True, 3)
    assert "logprobs=mapped" in sent.told
    assert sent_by(adapter_of("fireworks"), logprobs=9).body["top_logprobs"] == 5


def test_the_number_alone_asks_for_log_probabilities_where_it_is_refused() -> None:
    sent = sent_by(adapter_of("vllm"), top_logprobs=2)
    assert (sent.body["logprobs"], sent.told) == (True, ["logprobs=rewritten"])


def test_alternatives_that_come_unasked_are_counted_by_what_was_asked_for() -> None:
    sent = sent_by(adapter_of("llama_cpp_server"), logprobs=True, top_logprobs=2)
    assert sent.needs is not None
    assert (sent.needs.logprobs, sent.needs.top_logprobs) == (True, 2)


def test_a_text_completion_has_counted_since_the_beginning() -> None:
    for provider in ("openai_compatible", "together", "vllm"):
        sent = sent_by(adapter_of(provider), Operation.COMPLETIONS, logprobs=2)
        assert (sent.body["logprobs"], sent.told) == (2, [])


# Forms of an answer

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "a": {"type": ["string", "null"], "maxLength": 3},
        "b": {"$ref": "#/definitions/d"},
        "c": {"type": "array", "items": True},
        "items": {"enum": [{"type": "object", "properties": {}}]},
    },
    "required": ["a"],
    "definitions": {"d": {"type": "object", "properties": {"x": {"type": "integer"}}}},
}


def wanted(schema: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "s", "schema": schema, **more}}


def test_a_dialect_allows_no_more_than_the_clients_schema() -> None:
    dialect = DialectSpec(
        closed_objects=True, all_required=True, defs_only=True, single_types=True, no_boolean_items=True
    )
    before = repr(SCHEMA)
    said = rewrite(SCHEMA, dialect)
    assert repr(SCHEMA) == before
    assert said == {
        "type": "object",
        "properties": {
            "a": {"anyOf": [{"type": "string", "maxLength": 3}, {"type": "null"}]},
            "b": {"$ref": "#/$defs/d"},
            "c": {"type": "array", "items": {}},
            "items": {"enum": [{"type": "object", "properties": {}}]},
        },
        "required": ["a", "b", "c", "items"],
        "additionalProperties": False,
        "$defs": {
            "d": {
                "type": "object",
                "properties": {"x": {"type": "integer"}},
                "additionalProperties": False,
                "required": ["x"],
            }
        },
    }
    answer = {"a": None, "b": {"x": 1}, "c": [1], "items": {"type": "object", "properties": {}}}
    for schema in (said, SCHEMA):
        assert validator_for(schema).is_valid(answer)
    assert not validator_for(said).is_valid({**answer, "more": 1})


def test_references_follow_the_definitions() -> None:
    assert with_defs({"$ref": "#/definitions/a/b"}) == {"$ref": "#/$defs/a/b"}
    assert with_defs({"enum": ["#/definitions/a"]}) == {"enum": ["#/definitions/a"]}


def test_a_schema_stands_where_the_provider_looks_for_it() -> None:
    plain = {"type": "object", "properties": {}}
    tgi = sent_by(adapter_of("tgi"), response_format=wanted(plain))
    assert tgi.body["response_format"] == {"type": "json_schema", "value": plain}
    assert tgi.told == ["response_format=rewritten"]
    old = sent_by(adapter_of("llama_cpp_python"), response_format=wanted(plain))
    assert old.body["response_format"] == {"type": "json_object", "schema": plain}
    strict = sent_by(adapter_of("sglang"), response_format=wanted(plain, strict=False))
    assert strict.body["response_format"]["json_schema"]["strict"] is True


def test_any_object_is_said_as_a_schema_where_that_alone_is_known() -> None:
    sent = sent_by(adapter_of("lm_studio"), response_format={"type": "json_object"})
    assert sent.body["response_format"]["json_schema"]["schema"] == {"type": "object"}
    assert sent.told == ["response_format=rewritten"]


def test_plain_text_needs_no_saying() -> None:
    sent = sent_by(adapter_of("tgi"), response_format={"type": "text", "json_schema": None})
    assert ("response_format" in sent.body, sent.told) == (False, [])


def test_a_form_nobody_can_give_is_refused() -> None:
    without = adapter_of("openai_compatible", params={"response_format.json_object": {"support": "rejected"}})
    with pytest.raises(ProviderError, match="response_format"):
        sent_by(without, response_format={"type": "json_object"})
    dropped = sent_by(without, unsupported=Unsupported.DROP, response_format={"type": "json_object"})
    assert dropped.told == ["response_format=dropped"]


def test_a_form_of_other_servers_is_refused_where_it_is_not_known() -> None:
    regex = {"type": "regex", "pattern": "a+"}
    assert sent_by(adapter_of("together"), response_format=regex).body["response_format"] == regex
    with pytest.raises(ProviderError, match="response_format"):
        sent_by(adapter_of("groq"), response_format=regex)


def test_members_without_a_value_are_not_sent_where_they_are_refused() -> None:
    sent = sent_by(adapter_of("fireworks"), response_format={"type": "json_object", "json_schema": None})
    assert sent.body["response_format"] == {"type": "json_object"}


# What does not go together


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
