"""Refuses tools, and forms of answer, that a provider's file says are refused."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import jsonschema_rs

from adapters.simulator.facts import Body, has_effect
from adapters.simulator.refusal import Refusals
from adapters.spec import DialectSpec, ProviderSpec
from adapters.vocabulary import MessageRule, Patch, SchemaPlace

Schema = Mapping[str, Any]

_JSON_SCHEMA: Final = frozenset({"description", "name", "schema", "strict"})
_NAME: Final = re.compile(r"[\w.-]{1,64}")
_NESTED: Final = ("items", "additionalProperties", "not")
_NESTED_LISTS: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
_NESTED_MAPS: Final = ("properties", "$defs", "definitions")


class ToolRules:
    """What one provider takes of ``tools``, ``tool_choice`` and ``response_format``."""

    def __init__(self, spec: ProviderSpec, refusals: Refusals) -> None:
        self._spec = spec
        self._refusals = refusals
        self._nested = spec.transport.unknown_body_fields.nested
        self._strict = spec.transport.unknown_body_fields.only_known
        self._fields = spec.messages.fields
        own = {rule.tool["type"] for rule in spec.params.values() if "type" in rule.tool}
        self._types = frozenset({"function", *own})
        rule = spec.params.get("tools")
        # A patch that takes something away is there because it is refused.
        self._no_empty_list = rule is not None and rule.patch is Patch.DROP_EMPTY_LIST
        self._no_strict = rule is not None and rule.patch is Patch.CLEAN_TOOLS
        self._strict_alike = MessageRule.STRICT_ALIKE in spec.messages.rules
        self._choice_needs_tools = MessageRule.CHOICE_NEEDS_TOOLS in spec.messages.rules
        form = spec.params.get("response_format.json_schema")
        self._dialect = (form.dialect if form is not None else None) or DialectSpec()

    def check(self, body: Body) -> None:
        """Raise the `RefusedError` of the first thing that is not taken."""
        names = self._check_tools(body)
        choice = body.get("tool_choice")
        if choice is not None and not names and self._choice_needs_tools:
            raise self._refusals.invalid("'tool_choice' : needs 'tools'", "tool_choice")
        if isinstance(choice, Mapping) and has_effect(self._spec.params.get("tool_choice"), "tool_choice"):
            function = choice.get("function")
            name = function.get("name") if isinstance(function, Mapping) else None
            if not isinstance(name, str) or name not in names:
                raise self._refusals.invalid(
                    f"'tool_choice' : {json.dumps(name)} is not among the tools", "tool_choice"
                )
        self._check_format(body.get("response_format"))

    def _check_tools(self, body: Body) -> set[str]:
        tools = body.get("tools")
        if tools == [] and self._no_empty_list:
            raise self._refusals.invalid("'tools' : minimum number of items is 1", "tools")
        names: set[str] = set()
        for number, tool in enumerate(tools or ()):
            at = f"tools[{number}]"
            kind = tool.get("type") if isinstance(tool, Mapping) else None
            known = kind in self._types if isinstance(kind, str) else kind is None
            if not isinstance(tool, Mapping) or not (known or (isinstance(kind, str) and not self._strict)):
                raise self._refusals.invalid(f"'{at}.type' : {json.dumps(kind)} is no type of tool", f"{at}.type")
            if kind != "function":
                continue
            self._only(at, tool, frozenset(self._fields.tool))
            names.add(self._check_function(f"{at}.function", tool.get("function")))
        if self._strict_alike and len({_is_strict(tool) for tool in tools or () if tool.get("type") == "function"}) > 1:
            words = "Tools with mixed values for 'strict' are not allowed."
            raise self._refusals.invalid(words, "tools", status=422)
        return names

    def _check_function(self, at: str, function: Any) -> str:
        name = function.get("name") if isinstance(function, Mapping) else None
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise self._refusals.invalid(f"'{at}.name' : {json.dumps(name)} is no name for a function", f"{at}.name")
        self._only(at, function, frozenset(self._fields.function))
        if "strict" in function and self._no_strict:
            raise self._refusals.unknown_field(f"{at}.strict", function["strict"])
        parameters = function.get("parameters")
        if parameters is not None and not _is_schema(parameters):
            raise self._refusals.invalid(f"'{at}.parameters' : value must be a schema", f"{at}.parameters")
        return name

    def _check_format(self, form: Any) -> None:
        if not isinstance(form, Mapping):
            return
        kind = form.get("type")
        rule = self._spec.params.get(f"response_format.{kind}")
        if rule is None:
            raise self._refusals.invalid(f"'response_format.type' : {json.dumps(kind)} is not known", "response_format")
        if kind in ("json_schema", "json_object") and has_effect(rule, f"response_format.{kind}"):
            self._check_placed(kind, form)

    def _check_placed(self, kind: str, form: Mapping[str, Any]) -> None:
        """A schema has to stand where this provider looks for it."""
        match self._dialect.place:
            case SchemaPlace.OPENAI if kind == "json_schema":
                at, holder, name = "response_format.json_schema", form.get("json_schema"), "schema"
                if isinstance(holder, Mapping):
                    self._only(at, holder, _JSON_SCHEMA)
                    if self._dialect.name_required and not isinstance(holder.get("name"), str):
                        raise self._refusals.invalid(f"'{at}.name' : property is missing", f"{at}.name")
            case SchemaPlace.VALUE:
                at, holder, name = "response_format", form, "value"
            case SchemaPlace.JSON_OBJECT if kind == "json_schema":
                raise self._refusals.invalid("'response_format.type' : \"json_schema\" is not known", "response_format")
            case _:
                return
        schema = holder.get(name) if isinstance(holder, Mapping) else None
        if not isinstance(schema, Mapping):
            raise self._refusals.invalid(f"'{at}.{name}' : property is missing", at)
        if not _is_schema(schema):
            raise self._refusals.invalid(f"invalid JSON schema: {at}.{name}", "response_format")
        strict = isinstance(holder, Mapping) and holder.get("strict") is True
        if strict or not self._dialect.only_strict:
            self._check_schema(f"{at}.{name}", schema)

    def _check_schema(self, at: str, schema: Schema) -> None:
        for place, node in _nodes(at, schema):
            for rule in _SCHEMA_RULES:
                words = rule(node, self._dialect)
                if words is not None:
                    raise self._refusals.invalid(f"invalid JSON schema: {place}: {words}", "response_format")

    def _only(self, at: str, members: Mapping[str, Any], known: frozenset[str]) -> None:
        for name, value in members.items():
            if self._nested and name not in known:
                raise self._refusals.unknown_field(f"{at}.{name}", value)


def _is_schema(value: Any) -> bool:
    try:
        return isinstance(value, dict) and jsonschema_rs.meta.is_valid(value)
    except (ValueError, jsonschema_rs.ReferencingError):  # it calls itself one of a kind that is not known
        return False


def _nodes(at: str, schema: Any) -> Iterator[tuple[str, Schema]]:
    if not isinstance(schema, Mapping):
        return
    yield at, schema
    for key in _NESTED:
        yield from _nodes(f"{at}.{key}", schema.get(key))
    for key in _NESTED_LISTS:
        for number, inner in enumerate(schema.get(key) or ()):
            yield from _nodes(f"{at}.{key}[{number}]", inner)
    for key in _NESTED_MAPS:
        for name, inner in (schema.get(key) or {}).items():
            yield from _nodes(f"{at}.{key}.{name}", inner)


def _is_strict(tool: Mapping[str, Any]) -> bool:
    return tool["function"].get("strict") is True


def _is_object(node: Schema) -> bool:
    return node.get("type") == "object" or "properties" in node


def _closed(node: Schema, dialect: DialectSpec) -> str | None:
    open_ = _is_object(node) and node.get("additionalProperties") is not False
    return "'additionalProperties' must be false" if open_ and dialect.closed_objects else None


def _all_required(node: Schema, dialect: DialectSpec) -> str | None:
    missing = set(node.get("properties") or ()) - set(node.get("required") or ()) if _is_object(node) else None
    return (
        f"'required' must name every property; missing: {sorted(missing)}" if missing and dialect.all_required else None
    )


def _definitions(node: Schema, dialect: DialectSpec) -> str | None:
    return "'definitions' is not supported, use '$defs'" if dialect.defs_only and "definitions" in node else None


def _type_arrays(node: Schema, dialect: DialectSpec) -> str | None:
    return "'type' must be a string" if dialect.single_types and isinstance(node.get("type"), list) else None


def _boolean_items(node: Schema, dialect: DialectSpec) -> str | None:
    return "'items' must be a schema" if dialect.no_boolean_items and isinstance(node.get("items"), bool) else None


def _external_refs(node: Schema, dialect: DialectSpec) -> str | None:
    outside = "$ref" in node and not str(node["$ref"]).startswith("#")
    return "'$ref' must point into the schema" if dialect.no_external_refs and outside else None


def _keywords(node: Schema, dialect: DialectSpec) -> str | None:
    found = next((name for name in dialect.unknown_keywords if name in node), None)
    return f"'{found}' is not supported" if found is not None else None


_SCHEMA_RULES: Final = (
    _closed, _all_required, _definitions, _type_arrays, _boolean_items, _external_refs, _keywords,
)  # fmt: skip
