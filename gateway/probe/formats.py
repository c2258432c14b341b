"""JSON schemas and tools: where a schema has to stand, what it may hold, and what a tool may carry."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

from adapters.spec import DialectSpec, Support
from adapters.vocabulary import Patch, SchemaPlace
from gateway.probe.finding import Finding
from gateway.probe.samples import OK, ROOM, SCHEMA, TOOL, schema_format
from gateway.probe.session import Session, compare

_ANSWER: Final = {"answer": {"type": "string"}}
_BREAKS: Final[Mapping[str, Mapping[str, Any]]] = {
    "closed_objects": {"type": "object", "properties": _ANSWER, "required": ["answer"]},
    "all_required": {**SCHEMA, "properties": {**_ANSWER, "more": {"type": "string"}}},
    "defs_only": {
        **SCHEMA,
        "properties": {"answer": {"$ref": "#/definitions/text"}},
        "definitions": {"text": {"type": "string"}},
    },
    "single_types": {**SCHEMA, "properties": {"answer": {"type": ["string", "null"]}}},
    "no_boolean_items": {**SCHEMA, "properties": {"answer": {"type": "array", "items": True}}},
}
"""Schemas that each break one rule a dialect may have, and no other."""


async def formats(session: Session) -> AsyncIterator[Finding]:
    """Findings on the dialect of schemas, and on tools."""
    rule = session.param("response_format.json_schema")
    if rule is not None and rule.support not in (Support.REJECTED, Support.ABSENT, Support.IGNORED, Support.UNKNOWN):
        dialect = rule.dialect or DialectSpec()
        if dialect.place is not SchemaPlace.OPENAI:
            yield await _placed(session, dialect.place)
        elif session.acts_on("response_format.json_schema"):
            async for finding in _dialect(session, dialect):
                yield finding
    if session.acts_on("tools"):
        async for finding in _tools(session):
            yield finding


async def _placed(session: Session, place: SchemaPlace) -> Finding:
    form = (
        {"type": "json_schema", "value": SCHEMA}
        if place is SchemaPlace.VALUE
        else {"type": "json_object", "schema": SCHEMA}
    )
    seen = await session.chat({"response_format": form}, OK, ROOM)
    fact = "params.response_format.json_schema.dialect.place"
    return compare(fact, True, seen, _changed("place", SchemaPlace.OPENAI.value))


async def _dialect(session: Session, dialect: DialectSpec) -> AsyncIterator[Finding]:
    for rule, schema in _BREAKS.items():
        seen = await session.chat({"response_format": schema_format(schema)}, OK, ROOM)
        has = bool(getattr(dialect, rule))
        yield compare(f"params.response_format.json_schema.dialect.{rule}", not has, seen, _changed(rule, not has))
    if dialect.name_required:
        seen = await session.chat({"response_format": schema_format(name=None)}, OK, ROOM)
        fact = "params.response_format.json_schema.dialect.name_required"
        yield compare(fact, False, seen, _changed("name_required", False))


def _changed(key: str, value: Any) -> dict[str, Any]:
    return {"params": {"response_format.json_schema": {"dialect": {key: value}}}}


async def _tools(session: Session) -> AsyncIterator[Finding]:
    rule = session.param("tools")
    patch = rule.patch if rule is not None else None
    facts = session.spec.messages.fields
    known = not session.spec.transport.unknown_body_fields.nested or "strict" in facts.function
    strict = {**TOOL, "function": {**TOOL["function"], "strict": True, "parameters": {**_CLOSED}}}  # type: ignore[dict-item]  # a literal of mixed values
    seen = await session.chat({"tools": [strict]})
    yield compare(
        "params.tools.strict",
        known and patch is not Patch.CLEAN_TOOLS,
        seen,
        {"params": {"tools": {"patch": None if patch is Patch.CLEAN_TOOLS else Patch.CLEAN_TOOLS.value}}},
        contested=rule is not None and rule.facts.get("strict_field") == "contested",
    )
    if patch in (None, Patch.DROP_EMPTY_LIST):
        seen = await session.chat({"tools": []})
        yield compare(
            "params.tools.empty",
            None if patch is None and session.spec.hosted else patch is None,
            seen,
            {"params": {"tools": {"patch": None if patch is not None else Patch.DROP_EMPTY_LIST.value}}},
        )


_CLOSED: Final = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
