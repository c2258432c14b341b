"""What a target turns out not to take in JSON schemas: keywords, open objects, members that may be missing.

Nothing is given up by leaving a keyword out of ``response_format``: the answer is checked against the client's own
schema. In the schema of a tool it is a hint less to the model. Closed objects and required members allow less than the
client does, never more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from adapters.draft import Draft
from adapters.parameter_patches import raw
from adapters.schema_dialect import rewrite
from adapters.spec_request import DialectSpec
from adapters.told import Told
from adapters.types import Action

_decode = msgspec.json.Decoder().decode

_FAMILIES: Final = (
    ("minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains"),
    ("minLength", "maxLength"),
    ("pattern",),
    ("format", "contentEncoding", "contentMediaType"),
    ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    ("minProperties", "maxProperties", "patternProperties", "propertyNames", "dependentRequired", "dependentSchemas"),
    ("additionalProperties", "unevaluatedProperties", "unevaluatedItems"),
    ("if", "then", "else", "not"),
    ("oneOf",),
    ("allOf",),
    ("default", "examples", "title", "deprecated", "readOnly", "writeOnly"),
    ("$schema", "$id", "$comment"),
)
"""Keywords without which a schema still says what the answer looks like. A refusal names the first that it meets, of
several that its server lacks (anomalyco/opencode#43371): who lacks one is sent none of the family."""
_USED_AS_WORDS: Final = frozenset(("if", "then", "else", "not", "contains", "title", "default", "pattern", "format"))
"""Keywords that are words of a sentence as well: only in quotes, or at the end of a path, do they name themselves."""
_WRONG_FORMAT: Final = re.compile(r"is not a (?:valid|supported) format")
_CLOSED: Final = re.compile(r"additionalproperties\b.{0,60}\bfalse\b", re.DOTALL)
_ALL_REQUIRED: Final = re.compile(r"\brequired\b.{0,120}\b(?:every key|all (?:keys|properties|fields))\b", re.DOTALL)


def keywords_refused(schema: bytes, told: Told) -> frozenset[str]:
    """The keywords in *schema*, JSON, that a refusal says are not taken."""
    if _WRONG_FORMAT.search(told.text) and b'"format"' in schema:
        return frozenset(("format",))
    if not told.unsupported or _CLOSED.search(told.text):
        return frozenset()
    families = (family for family in _FAMILIES if any(_is_refused(keyword, schema, told.text) for keyword in family))
    return frozenset(keyword for family in families for keyword in family)


def dialect_told(schema: bytes, strict: bool, known: DialectSpec | None, told: Told) -> Mapping[str, Any] | None:
    """What is known of the schemas that a target takes, after a refusal of *schema*; None where it tells nothing new.

    *strict*: the client bound the model to it.
    """
    known = known or DialectSpec()
    learned: dict[str, Any] = {}
    keywords = keywords_refused(schema, told) - set(known.unknown_keywords)
    if keywords:
        learned["unknown_keywords"] = (*known.unknown_keywords, *sorted(keywords))
    if _CLOSED.search(told.text) and not known.closed_objects:
        learned["closed_objects"] = True
    if _ALL_REQUIRED.search(told.text) and not known.all_required:
        learned["all_required"] = True
    if learned and known.only_strict and not strict:
        learned["only_strict"] = False
    return learned or None


@dataclass(frozen=True, slots=True)
class PlainToolSchemas:
    """Send the schemas of tools without *keywords*."""

    keywords: frozenset[str]

    def __call__(self, draft: Draft) -> None:
        tools = _decode(draft.body["tools"])
        dialect = DialectSpec(unknown_keywords=tuple(sorted(self.keywords)))
        if isinstance(tools, list):
            plain = [_with_plain_schema(tool, dialect) for tool in tools]
            if plain != tools:
                draft.body["tools"] = raw(plain)
                draft.adjusted("tools", Action.REWRITTEN)


def _with_plain_schema(tool: Any, dialect: DialectSpec) -> Any:
    function = tool.get("function") if isinstance(tool, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("parameters"), dict):
        return tool
    return {**tool, "function": {**function, "parameters": rewrite(function["parameters"], dialect)}}


def is_strict(wanted: msgspec.Raw) -> bool:
    """Whether the ``json_schema`` of a response format binds the model."""
    return re.search(rb'"strict"\s*:\s*true', bytes(wanted)) is not None


def _is_refused(keyword: str, schema: bytes, text: str) -> bool:
    if b'"%b"' % keyword.encode() not in schema:
        return False
    word = re.escape(keyword.lower())
    if keyword in _USED_AS_WORDS:
        return re.search(rf"['\"`]{word}['\"`]|[./]{word}\b", text) is not None
    return re.search(rf"(?<![\w$]){word}(?!\w)", text) is not None
