"""The smallest instance of a schema is one."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from adapters.simulator.sample import sample

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
