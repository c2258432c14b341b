"""A JSON schema in the dialect of a provider: a copy that allows no more than the client's own."""

from __future__ import annotations

from typing import Any, Final

from adapters.spec_request import DialectSpec

# Members that hold one schema, a list of schemas, or schemas by name. Whatever else stands in a schema is a value:
# an ``enum`` or an ``example`` may look like a schema without being one.
_ONE: Final = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_SEVERAL: Final = ("anyOf", "allOf", "oneOf", "prefixItems")
_NAMED: Final = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")


def rewrite(schema: dict[str, Any], dialect: DialectSpec) -> dict[str, Any]:
    """*schema* as *dialect* takes it; the client's own stays as it is."""
    said = with_defs(schema) if dialect.defs_only else schema
    rewritten = _rewrite(said, dialect)
    assert isinstance(rewritten, dict)
    return rewritten


def _rewrite(schema: Any, dialect: DialectSpec) -> Any:
    if not isinstance(schema, dict):
        return schema
    made = {name: value for name, value in schema.items() if name not in dialect.unknown_keywords}
    if dialect.no_external_refs and not str(made.get("$ref", "#")).startswith("#"):
        del made["$ref"]
    for name in _ONE:
        if name in made:
            made[name] = _rewrite(made[name], dialect)
    for name in _SEVERAL:
        if isinstance(made.get(name), list):
            made[name] = [_rewrite(one, dialect) for one in made[name]]
    for name in _NAMED:
        if isinstance(made.get(name), dict):
            made[name] = {key: _rewrite(one, dialect) for key, one in made[name].items()}
    if dialect.no_boolean_items and made.get("items") is True:
        made["items"] = {}
    if "properties" in made or made.get("type") == "object":
        if dialect.closed_objects and made.get("additionalProperties") is not False:
            made["additionalProperties"] = False
        if dialect.all_required and isinstance(made.get("properties"), dict):
            made["required"] = list(made["properties"])
    if dialect.single_types and isinstance(made.get("type"), list):
        return _one_type_each(made)
    return made


def _one_type_each(schema: dict[str, Any]) -> dict[str, Any]:
    """The list of types as alternatives, each with what else the schema says."""
    kinds = schema["type"]
    shared = {name: value for name, value in schema.items() if name in ("title", "description", "default")}
    rest = {name: value for name, value in schema.items() if name not in (*shared, "type")}
    if len(kinds) == 1:
        return {**schema, "type": kinds[0]}
    options = [{"type": kind} if kind == "null" else {**rest, "type": kind} for kind in kinds]
    return {**shared, "anyOf": options}


def with_defs(schema: Any) -> Any:
    """A copy of *schema* whose ``definitions`` are called ``$defs``, references included."""
    if isinstance(schema, dict):
        copied: dict[str, Any] = {}
        for name, value in schema.items():
            if name == "$ref" and isinstance(value, str):
                copied[name] = value.replace("#/definitions/", "#/$defs/")
            elif name == "definitions" and isinstance(value, dict):
                copied["$defs"] = {**with_defs(value), **copied.get("$defs", {})}
            elif name == "properties" and isinstance(value, dict):
                # Names of the client's own: one may well be called "definitions".
                copied[name] = {key: with_defs(inner) for key, inner in value.items()}
            else:
                copied[name] = with_defs(value)
        return copied
    if isinstance(schema, list):
        return [with_defs(item) for item in schema]
    return schema
