"""Forms of an answer, and its log probabilities."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema_rs import validator_for

from adapters.draft import Unsupported
from adapters.errors import ProviderError
from adapters.schema_dialect import rewrite, with_defs
from adapters.spec_request import DialectSpec
from adapters.types import Operation
from tests.fakes.prepared import adapter_of, sent_by


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
