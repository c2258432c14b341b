"""The smallest instance of a schema is one."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from adapters.simulator.sample import Wish, sample

NODE = {
    "type": "object",
    "properties": {"value": {"type": "integer"}, "next": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/node"}]}},
    "required": ["value"],
}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "minLength": 3},
        {"type": "string", "format": "date-time"},
        {"type": "integer", "minimum": 5},
        {"type": "integer", "exclusiveMinimum": 5},
        {"type": "integer", "maximum": -5},
        {"type": "integer", "multipleOf": 7, "minimum": 8},
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        {"type": "array", "items": {"type": "boolean"}, "minItems": 2},
        {"type": ["null", "string"]},
        {"type": "null"},
        {"const": {"a": 1}},
        {"enum": ["b", "a"]},
        {
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {}},
            "required": ["a"],
            "additionalProperties": False,
        },
        {"allOf": [{"type": "object", "properties": {"a": {"type": "string"}}}, {"required": ["a"]}]},
        {"$defs": {"node": NODE}, "$ref": "#/$defs/node"},
        {"$defs": {"a/b": {"const": 1}}, "type": "object", "properties": {"x": {"$ref": "#/$defs/a~1b"}}},
        True,
    ],
)
def test_a_sample_fits_its_schema(schema: Any) -> None:
    assert jsonschema_rs.is_valid(schema, sample(schema))


def test_a_schema_that_refers_to_itself_ends() -> None:
    endless = {"type": "object", "properties": {"again": {"$ref": "#"}}, "required": ["again"]}

    assert sample(endless)["again"]["again"] is not None


def test_optional_members_are_left_out() -> None:
    assert sample(NODE) == {"value": 1}


CALLS = {
    "anyOf": [
        {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]},
        {
            "type": "object",
            "properties": {"calls": {"type": "array", "items": {"$ref": "#/$defs/look"}, "maxItems": 2}},
            "required": ["calls"],
        },
    ],
    "$defs": {"look": {"type": "object", "properties": {"name": {"const": "look"}, "arguments": {"type": "object"}}}},
}


def test_a_call_that_was_told_takes_the_place_a_schema_has_for_calls() -> None:
    told = [("look", {"where": "up"}), ("look", {"where": "down"}), ("look", {})]

    assert sample(CALLS, Wish(told)) == {"calls": [{"name": "look", "arguments": one} for _, one in told[:2]]}
    assert sample(CALLS, Wish([("listen", {})], "no such function")) == {"answer": "no such function"}


def test_arguments_that_were_told_are_the_instance_of_their_own_schema() -> None:
    arguments = {"type": "object", "properties": {"where": {"type": "string"}}, "required": ["where"]}

    assert sample(arguments, Wish([("look", {"where": "up"})])) == {"where": "up"}
    assert sample(arguments, Wish([("look", {"far": 1})])) == {"where": "x"}
